"""The sections of the config tree: every option with its meaning, bounds and default."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, field_validator, model_validator

from vlrl.config.chat import ChatEndpoint
from vlrl.config.names import REFUSED
from vlrl.config.rollout import StructuredOutputs
from vlrl.config.section import Name, named_list
from vlrl.config.section import Section as Section


def _interval(ends: tuple[float, float] | None) -> tuple[float, float] | None:
    if ends is not None and not ends[0] < ends[1]:
        raise ValueError(f"{list(ends)} must be [lowest, highest]")
    return ends


class RunConfig(Section):
    """Where a run lives and what makes it repeatable."""

    name: str = Field("run", pattern=r"^[A-Za-z0-9._-]+$")
    """Folder under `dir`; letters, digits, dot, dash and underscore."""
    dir: Path = Path("runs")
    """Parent folder of all runs, which all hosts of a cluster share. Like every option that is a path it is
    made absolute when the config is read, as seen from the folder in which vlrl was started."""
    seed: int = Field(0, ge=0)
    """Every random choice derives from it (law 8)."""
    check_memory: Literal["error", "warn", "skip"] = "error"
    """What to do if `vlrl plan` predicts that the run does not fit this machine: refuse it before engines
    start, with the changes that would make it fit; print a warning; or do not predict."""


class ModelConfig(Section):
    """The policy."""

    path: str
    """A hub name (Qwen/Qwen2.5-VL-3B-Instruct), a folder in Hugging Face format, which is made absolute, or
    its URL (s3://bucket/model), which every host fetches once into its user's cache folder."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Dtype of weights and activations in trainer and engines; optimizer states are float32."""
    attention: Literal["sdpa", "eager"] = "sdpa"
    """Attention of the trainer's vision tower; that of the language model is trainer.attention. On a GPU
    sdpa attends to all windows of a tower at once."""
    freeze: list[str] = Field(default_factory=list)
    """Parts that are not trained: vision_tower, projector, embeddings, language_layers, head, or patterns
    of names."""

    @field_validator("dtype", mode="before")
    @classmethod
    def _no_half(cls, value: object) -> object:
        if value in ("float16", "fp16", "half"):
            raise ValueError(REFUSED["float16"])
        return value


class RewardConfig(Section):
    """One reward and its weight. `vlrl.scoring.compose` has the formula of the total."""

    name: Name
    """A registered reward or ./file.py:function; from Python, a function."""
    weight: float | list[tuple[int, float]] = 1.0
    """The total is Σ weight · value; weight 0 only logs it. A list of [step, weight] is linear in between and
    constant outside: [[0, 1.0], [200, 0.2]]."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the reward by name."""
    gate: float | None = None
    """If set and the value is below it, the other rewards of this completion can only lower the total:
    what they would add is not counted. True is 1."""
    clip: tuple[float, float] | None = None
    """Lowest and highest value that counts towards the total; the log has the value before clipping."""
    adapter: Literal[
        "auto", "plain", "trl", "trl_text", "verifiers", "easyr1", "vlm_r1", "verl", "openrlhf", "slime"
    ] = "auto"
    """Convention that the function follows; auto: chosen from its signature. trl_text: TRL's, with texts
    instead of messages."""
    timeout_s: float | None = Field(None, gt=0)
    """Time limit of one call in seconds; null: that of `scoring`."""

    @field_validator("gate", mode="before")
    @classmethod
    def _gate_by_name(cls, gate: Any) -> Any:
        return {True: 1.0, False: None}[gate] if isinstance(gate, bool) else gate

    @field_validator("weight")
    @classmethod
    def _rising_steps(cls, weight: Any) -> Any:
        if isinstance(weight, list):
            steps = [step for step, _ in weight]
            if not steps or steps[0] < 0 or any(b <= a for a, b in pairwise(steps)):
                raise ValueError(f"the steps of a weight must be at least 0 and rise, not {steps}")
        return weight

    @field_validator("clip")
    @classmethod
    def _rising_clip(cls, clip: Any) -> Any:
        return _interval(clip)


RewardList: TypeAlias = Annotated[list[RewardConfig], BeforeValidator(named_list)]
"""One or several; a name alone stands for {name: …}."""


class ScoringConfig(Section):
    """Where and how rewards run, and what their failures may cost (law 7)."""

    num_workers: int | None = Field(None, ge=1)
    """Processes of the pool that runs all rewards but async and GPU-bound ones; null: one per core."""
    timeout_s: float = Field(30.0, gt=0)
    """A call in the pool that takes longer is a failure, and its worker is replaced."""
    async_timeout_s: float = Field(600.0, gt=0)
    """Time limit of an async reward, such as a judge, which may have to wait for others."""
    num_tried: int = Field(2, ge=0)
    """Samples whose references each reward is called on before engines start; 0 calls none."""
    memory_gib: float = Field(4.0, gt=0.1)
    """Memory of one worker for data, its libraries' included; a call that needs more is a failure."""
    clip: tuple[float, float] | None = None
    """Lowest and highest total."""
    max_failed_share: float = Field(0.2, ge=0, le=1)
    """If a larger share of a step's completions cannot be scored, the run ends; 0: at the first failure,
    1: never."""

    @field_validator("clip")
    @classmethod
    def _rising_clip(cls, clip: Any) -> Any:
        return _interval(clip)


class RolloutConfig(Section):
    """What is generated in a step, from the whole distribution: top-p and top-k would make ratios wrong."""

    prompts_per_step: int = Field(16, ge=1)
    """Samples per step."""
    group_size: int = Field(8, ge=1)
    """Completions per sample, n. 1 is refused where the group is its own baseline: with any algorithm.credit
    but remax, or another that compares with a greedy completion, and without a critic (algorithm=ppo)."""
    temperature: float = Field(1.0, gt=0)
    """Divisor of the logits, in the engines and in the trainer."""
    max_tokens: int = Field(256, ge=1)
    """Most tokens of one completion."""
    structured_outputs: StructuredOutputs | None = None
    """The form of completions for which neither a row, nor an environment, nor a policy gives another."""
    num_workers: int | None = Field(None, ge=0)
    """Processes that play episodes near the engines: each runs the environments, scores, packs, and has
    its part of episodes.max_episodes, scoring.num_workers and env.num_processes. 0: the driver plays.
    Null: 0 on one machine without a GPU, else one per two GPUs of each node with engines, if it has the
    cores."""
    cpus_per_worker: float = Field(1.0, ge=0.001)
    """Cores that each rollout worker reserves in Ray."""
    max_worker_restarts: int = Field(3, ge=0)
    """How many times a rollout worker that died is replaced; its episodes are played again with the same
    seeds."""


class TrainerConfig(Section):
    """DeepSpeed ZeRO-3 ranks."""

    num_ranks: int | None = Field(None, ge=1)
    """Trainer processes, which share the parameters (ZeRO-3) and the work; gloo on CPUs, NCCL on GPUs.
    Null: one for each GPU that `placement` gives to the trainer, 1 on CPUs."""
    sequence_parallel: int = Field(1, ge=1)
    """Ranks that compute one sequence together, a slice each (Ulysses), for sequences too long for one
    rank."""
    max_tokens_per_micro_batch: int = Field(4096, ge=64)
    """Most tokens of one forward pass. There is no padding, and tokens that ledgers share count once."""
    max_pixels_per_micro_batch: int | None = Field(None, ge=28 * 28)
    """Most pixels of one pass through the vision tower; a sample with more goes alone. Null: no limit."""
    attention: Literal["auto", "dense", "blocks", "nodes", "flex"] = "auto"
    """Attention of the language model over prefix trees: one whole mask, blocks of queries, nodes of trees
    (CPU), or FlexAttention (GPU). auto is flex on a GPU and nodes on a CPU where a trial works, else blocks;
    the run says at its start which it is."""
    logits_chunk_mib: int | None = Field(None, ge=1)
    """Memory of one chunk of float32 logits; all tokens' logits are never held at once. Null is 64 on a CPU
    and 256 on a GPU."""
    deterministic: bool = True
    """Only operations whose sums have a fixed order, so that one seed gives one run bit for bit. False lets
    torch, cuDNN and NCCL choose the fastest, see docs/training_step.md; its cost on a GPU is unmeasured."""
    gradient_checkpointing: bool | Literal["vision", "language"] = False
    """Recompute activations in the backward pass, everywhere or on one side: less memory, a third slower."""
    offload_optimizer: bool = False
    """Keep optimizer states in host memory and update there; without a GPU this has no effect."""
    offload_parameters: bool = False
    """Keep each rank's slice of the weights in host memory."""
    offload_dir: Path | None = None
    """Folder of a local disk (NVMe) for what is offloaded, in place of host memory; needs libaio-dev, and on
    GPUs the CUDA toolkit."""
    router_aux_coef: float = Field(0.0, ge=0)
    """Coefficient of the loss that keeps a mixture's experts evenly used, in whatever is trained."""
    cpus_per_rank: float = Field(1.0, gt=0)
    """Cores each rank reserves in Ray."""
    master_port: int | None = Field(None, ge=1024, le=65535)
    """Port of the ranks' rendezvous; null takes a free one."""
    timeout_s: float = Field(1800.0, gt=0)
    """A collective that takes longer is an error."""
    max_restarts: int = Field(3, ge=0)
    """How many times a run whose rank died continues from its last checkpoint by itself; the next death
    ends it."""

    @property
    def world_size(self) -> int:
        """Ranks; 1 while num_ranks is null, until the run has counted its GPUs (`vlrl.placement.layout`)."""
        return self.num_ranks or 1

    @model_validator(mode="after")
    def _something_offloaded(self) -> TrainerConfig:
        if self.offload_dir is not None and not (self.offload_optimizer or self.offload_parameters):
            raise ValueError(
                "offload_dir has no effect without offload_optimizer or offload_parameters; set one of them, "
                "or leave offload_dir out"
            )
        return self

    @model_validator(mode="after")
    def _whole_groups(self) -> TrainerConfig:
        if self.num_ranks is not None and self.num_ranks % self.sequence_parallel:
            raise ValueError(
                f"sequence_parallel={self.sequence_parallel} does not divide num_ranks={self.num_ranks}; "
                "set it to a divisor"
            )
        return self


class ParityConfig(Section):
    """Law 5: the engines agree before training starts, and after every update."""

    num_samples: int = Field(4, ge=0)
    """Prompts checked at the start; 0 skips the check (and the message says so)."""
    tolerance: float | None = Field(None, gt=0)
    """Bound of |trainer - sampler| logprobs in nats: in float32 (null: 1e-3) of the largest, in bfloat16
    (null: 0.5) of the 99.9th percentile, and a tenth of it of the mean."""
    every_step: bool = True
    """Check the tolerance on every step's first minibatch, at no cost: the step computes its logprobs
    anyway."""


class EvalEndpoint(ChatEndpoint):
    """The model that `vlrl eval` asks, on a server."""

    max_concurrency: int = Field(64, ge=1)
    """Requests in flight at once."""
    timeout_s: float = Field(600.0, gt=0)
    """Most seconds of one request, connecting and the whole answer included."""
    image_format: Literal["jpeg", "png"] = "png"
    """PNG: exact; or JPEG at quality 95, several times smaller."""


class EvalConfig(Section):
    """Held-out evaluation, greedy and sampled."""

    every: int = Field(0, ge=0)
    """Steps between evaluations; 0: only before and after training."""
    num_samples: int | None = Field(None, ge=1)
    """Held-out rows used of each set; null: all."""
    during_samples: int = Field(128, ge=1)
    """Held-out rows of each set used by the evaluations in between."""
    num_answers: int = Field(1, ge=1)
    """Sampled answers of each row: n of mean@n; k of pass@k and majority@k go up to n. An answer
    passes at data.pass_threshold."""
    target_accuracy: float | None = Field(None, ge=0, le=1)
    """If set, the run says whether greedy held-out accuracy reached it and fails if it did not."""
    group_by: list[str] = Field(default_factory=list)
    """Keys of the rows' metadata; accuracy is also reported for each of their values, such as
    data_type=icon."""
    best_metric: str = "heldout/accuracy_greedy"
    """Metric of the evaluations of `every` that says which weights are the best."""
    lower_is_better: bool = False
    """The smallest value of best_metric is the best one."""
    keep_best: bool = False
    """Save a checkpoint at every evaluation that is the best so far, and keep it beside the latest ones;
    RUN/best is a link to its model."""
    patience: int | None = Field(None, ge=1)
    """Training ends after so many evaluations in a row that were no better than the best; null: never."""
    stop_at: float | None = None
    """Training ends when best_metric reaches this; null: never."""
    endpoint: EvalEndpoint | None = None
    """`vlrl eval` asks the model of an OpenAI-compatible server in place of model.path, whose processor still
    prepares the rows; null: an engine with model.path."""

    @property
    def selects(self) -> bool:
        """Whether evaluations during training decide something."""
        return self.keep_best or self.patience is not None or self.stop_at is not None

    @model_validator(mode="after")
    def _evaluations_to_select_by(self) -> EvalConfig:
        if self.selects and not self.every:
            raise ValueError(
                "keep_best, patience and stop_at look at evaluations during training, and every=0 makes "
                "none; set every to the steps between evaluations"
            )
        if not self.selects and (self.lower_is_better or self.best_metric != "heldout/accuracy_greedy"):
            raise ValueError(
                "best_metric and lower_is_better have no effect without keep_best, patience or stop_at; set "
                "one of them, or leave them out"
            )
        return self


class CheckpointConfig(Section):
    """When checkpoints are written, and which are kept."""

    every: int = Field(50, ge=0)
    """Steps between checkpoints; 0: only by time, at the end and on interruption."""
    every_minutes: float | None = Field(None, gt=0)
    """Most minutes between checkpoints, which are written at the end of a step; null: no limit."""
    keep: int = Field(2, ge=1)
    """Latest checkpoints kept, here and at upload_to."""
    upload_to: str | None = Field(None, pattern=r"^[A-Za-z][A-Za-z0-9+.-]*://.+")
    """URL of a folder (s3://bucket/prefix, or another that fsspec opens) to which each checkpoint is copied
    in the background, under the run's name; --resume fetches from there. S3 needs `pip install vlrl[s3]`."""


class RolloutLogConfig(Section):
    """Which rollouts of training are kept, in RUN/rollouts/train, a Parquet file a step."""

    every: int = Field(1, ge=0)
    """Keep those of every so many steps; 0 keeps none."""
    groups: int | None = Field(None, ge=1)
    """Keep the first so many groups of a step; null keeps all."""
    max_gib: float = Field(20.0, gt=0)
    """Files and images larger than this, in GiB, lose the oldest steps."""
    num_kept_steps: int | None = Field(None, ge=1)
    """Steps that are kept, the newest; null is bounded by max_gib alone."""


class LoggingConfig(Section):
    """Where metrics go; metrics.jsonl is always written."""

    tensorboard: bool = True
    """Write TensorBoard events to the run folder."""
    wandb_project: str | None = None
    """Weights & Biases project; null is off. Needs `pip install vlrl[wandb]`."""
    trackio_project: str | None = None
    """trackio project; null is off. Needs `pip install vlrl[trackio]`."""
    mlflow_uri: str | None = None
    """MLflow server or store, e.g. http://host:5000; null is off. Needs `pip install vlrl[mlflow]`."""
    mlflow_experiment: str = "vlrl"
    """MLflow experiment, made if missing."""
    table_rollouts: int = Field(0, ge=0)
    """Rollouts of a kept step, with their images, that the sinks above are sent as a table; 0 sends none."""
    timeline: bool = False
    """Write timeline.jsonl: when steps, requests, episodes and weight updates began and ended."""
    prometheus_port: int | None = Field(None, ge=0, le=65535)
    """Port of the driver's metrics for Prometheus (0: any free one); null: no process serves any. The others
    have free ports: RUN/prometheus_targets.json lists all."""
    prometheus_host: str = "127.0.0.1"
    """Address at which they are served, to anybody who reaches it; 0.0.0.0 for a Prometheus elsewhere."""
    prometheus_targets: str | None = None
    """Folder where that list is kept too, as NAME.json, so that one Prometheus finds all runs there."""
    silence_s: float | None = Field(600.0, gt=0)
    """Seconds in which nothing goes on, after which an event says who waits for whom, and the stacks of all
    processes are written to RUN/stacks; null: never. A longer step of the trainer is such a silence too."""
    traces: Literal["file", "otlp"] | None = None
    """OpenTelemetry spans of steps, episodes and requests: to RUN/traces.jsonl, or by OTLP over HTTP to
    OTEL_EXPORTER_OTLP_ENDPOINT; null: none. Needs `pip install vlrl[traces]`, which vLLM brings anyway."""
    num_report_rollouts: int = Field(16, ge=1)
    """Rollouts shown in the report, before and after training."""
    rollouts: RolloutLogConfig = RolloutLogConfig()
    """Rollouts of training that are kept on disk."""


class RayConfig(Section):
    """The cluster."""

    address: str | None = None
    """Address of a running cluster ("auto" finds one); null starts Ray on this machine for this run."""
    ship_code: bool = True
    """Send plug-ins' files with what is in their folders, and vlrl itself where it runs from a checkout, to
    all nodes of a running cluster; false if each has them at the same paths. A local Ray is sent nothing."""
    start_timeout_s: float = Field(300.0, gt=0)
    """Seconds to wait for GPUs and cores that other runs on the cluster have; then the run ends and names
    them."""
    object_store_gib: float = Field(0.5, gt=0.08)
    """Shared memory for a local Ray's objects, in GiB."""


class SftConfig(Section):
    """Supervised warm start (`vlrl sft`)."""

    batch_size: int = Field(32, ge=1)
    """Samples per step."""
    train_on: Literal["assistant", "last"] = "assistant"
    """Assistant turns of a conversation that are trained: every one, or only the last."""
    until_loss: float | None = Field(None, gt=0)
    """End before num_steps once the mean loss of 10 steps is at most this, so that later runs start alike."""
