"""The sections of the config tree that are about engines: how they generate, and how weights reach them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from vlrl.config.section import Section

if TYPE_CHECKING:
    from vlrl.config.load import Config


class GeneratorConfig(Section):
    """The vLLM engines."""

    mode: Literal["auto", "batch", "continuous"] = "auto"
    """batch: requests that come together are generated together, and nothing else meanwhile: the same
    batches, and with them the same last bits, in every run (law 8). continuous: requests join those that
    run, each is answered as it is done, and weights are updated in the middle of requests. auto is
    continuous with asynchronous.mode=async, which needs it, and else batch."""
    num_replicas: int | None = Field(None, ge=1, le=512)
    """Engines, each a process of its own; null is as many as there are GPUs for (`placement`), 1 on CPUs. An
    episode stays on its engine, whose prefix cache knows it."""
    servers: list[str] = Field(default_factory=list)
    """Engines that run elsewhere, in place of engines of the run: addresses such as [http://10.0.0.7:8000] of
    vLLM servers that `vlrl engine` started with the same config."""
    max_restarts: int = Field(3, ge=0)
    """Times that a replica whose process has died is replaced; what it was generating is generated again
    under the same seeds. One more death ends the run; 0 is at the first."""
    max_concurrency: Annotated[int, Field(ge=1)] | Literal["auto"] | None = None
    """Most requests that a replica is given at once in continuous mode; auto follows the use of its KV
    cache, up to max_num_seqs; null gives it all."""

    max_model_len: int = Field(4096, ge=64)
    """Most tokens of prompt and completion together."""
    max_num_seqs: int = Field(256, ge=1)
    """Completions decoded at once."""
    max_num_batched_tokens: int = Field(8192, ge=64)
    """Tokens per engine step. On GPUs a longer prompt takes several; on CPUs it must be at least
    `max_model_len`."""
    gpu_memory_utilization: float | None = Field(None, gt=0, le=1)
    """Share of a GPU's memory for weights and KV cache, while the engine has the GPU (`placement`); null is
    0.85. On CPUs vLLM wants this share of the host's memory free when it starts; null is 0.45."""
    cpu_kv_cache_gib: int = Field(1, ge=1)
    """KV cache on a CPU machine, in GiB."""
    tensor_parallel_size: int = Field(1, ge=1)
    """GPUs of one node that a replica is split over."""
    enforce_eager: bool | None = None
    """Skip compilation and CUDA graphs: starts sooner, decodes slower. Null skips them on CPUs only."""
    routing_replay: bool = False
    """For a mixture of experts: the engines record which experts they chose for each token, and the trainer's
    passes of the policy compute with these (R3, arXiv 2510.11370). Else a near tie of two experts that falls
    otherwise in the trainer puts its log-probabilities apart from the sampler's."""
    cpus: float = Field(1.0, gt=0)
    """Cores each engine's actor reserves in Ray."""
    engine: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of vLLM's EngineArgs by their names there, such as {block_size: 32}. Those that other
    options set, and those that break one of the ten laws, are refused with the key or the law."""

    @field_validator("servers")
    @classmethod
    def _plain_addresses(cls, servers: list[str]) -> list[str]:
        for server in servers:
            parts = urlsplit(server)
            plain = parts.scheme in ("http", "https") and parts.hostname and not parts.path.strip("/")
            if not plain or parts.username or parts.query or parts.fragment:
                raise ValueError(f"{server!r} is no server's address; write http://HOST:PORT, or https://…")
        if len(set(servers)) < len(servers):
            raise ValueError(f"{servers} names a server twice; each is an engine of its own")
        return [server.rstrip("/") for server in servers]


def require_use_of_servers(config: Config) -> None:
    """Raise ValueError for options of engines that servers elsewhere cannot follow."""
    generator = config.generator
    if not generator.servers:
        return
    if generator.num_replicas not in (None, len(generator.servers)):
        raise ValueError(
            f"generator.num_replicas={generator.num_replicas}: generator.servers names "
            f"{len(generator.servers)} engines; leave num_replicas out"
        )
    if generator.max_concurrency == "auto":
        raise ValueError(
            "generator.max_concurrency=auto follows the use of an engine's KV cache, which generator.servers "
            "do not tell; give a number, or leave it out"
        )
    if generator.routing_replay:
        raise ValueError(
            "generator.routing_replay: generator.servers do not return the choices of experts; leave one out"
        )
    if config.lora is not None and config.lora.sync == "adapter":
        raise ValueError(
            "lora.sync=adapter sends adapters to engines of the run alone; with generator.servers set "
            "lora.sync=merged"
        )


Transport = Literal["auto", "shared_memory", "disk", "broadcast"]


class WeightsConfig(Section):
    """How weights get from the trainer into the engines."""

    transport: Transport = "auto"
    """shared_memory: every rank writes its slice to memory that the engines read; with ranks on several
    nodes the weights are gathered, and one rank of each node writes them there. disk: safetensors files, a
    folder a version, also across hosts that share it. broadcast: from the trainer's rank 0 to all engines,
    over gloo on CPUs and over NCCL on GPUs, where no two processes may share one; a dead engine cannot be
    replaced then. auto: shared_memory where every node with an engine has a rank, else broadcast."""
    folder: Path | None = None
    """Folder of the disk transport; null: RUN/weights. Its files are removed at the end."""
    bucket_mib: float = Field(256.0, gt=0)
    """Parameters that disk and broadcast gather and send together, in MiB; a larger one goes alone."""
    checksums: bool = False
    """Compare what engines read with what the trainer has, by CRC-32, at every update and not only at the
    first one of an attempt and at probes: about a second a GiB on each side."""
    probe_every: int = Field(0, ge=0)
    """Updates between probes: engines compare every byte of such an update with what the trainer has,
    parity.num_samples prompts are generated at once under the new weights, and engine and trainer must agree
    on them. 0 is never; parity.every_step checks generated batches anyway."""
    timeout_s: float = Field(600.0, gt=0)
    """A transfer or a load that takes longer is an error."""
