"""Peak memory of a trainer rank, part by part, from shapes alone.

Counted as the code does: what ZeRO-3 keeps (arXiv 1910.02054, §5), what autograd saves in a layer, and one
chunk of logits. The constants say where they come from; benchmarks/plan_accuracy.py holds the sum against the
truth.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from vlrl.config import Config
from vlrl.model.adapters.nf4 import BYTES_PER_WEIGHT
from vlrl.model.head_logprobs import chunk_bytes_on
from vlrl.model.parts import recomputes
from vlrl.model.tree_attention import KEPT_PAIRS
from vlrl.plan.saved.layers import FLOAT32, key_values, layer_values, stack_bytes
from vlrl.plan.shapes import ModelShape
from vlrl.plan.workload import Workload
from vlrl.trainer.choices import fuses_update

MAX_LIVE_PARAMS = 1_000_000_000
"""Parameters that ZeRO-3 keeps gathered at most (DeepSpeed's stage3_max_live_parameters)."""
BUCKET_PARAMS = 500_000_000
"""Gradients that DeepSpeed reduces at a time (reduce_bucket_size); the buffer is reserved whole on a GPU."""
UPDATED_PARAMS = 1_000_000_000
"""Of a slice that DeepSpeed updates at a time (sub_group_size)."""
MOMENT_BYTES = {"float32": 4.0, "8bit": 1.0 + 4 / 256}
"""Bytes of one value of a moment; in 8 bit every 256 values have a float32 scale."""
PROCESS_BYTES = {"cpu": 640 * 2**20, "cuda": 600 * 2**20}
"""Memory of a rank before it has a model: libraries on the CPU, the CUDA context on a GPU."""


@dataclass(frozen=True, slots=True)
class RankMemory:
    """Bytes of one rank at its peak, on the device it trains on; on a CPU that is the host.

    Attributes:
        weights: this rank's slice, with the frozen reference's, the teacher's and the critic's.
        gathered: what ZeRO-3 has fetched of other slices, or from host memory.
        gradients: the slice and the buffer they are reduced in; a critic has its own.
        optimizer: float32 copy of the weights and both moments (optim.state).
        activations: what the language model saves for the backward pass, with the attention mask.
        vision: what the tower saves.
        logits: the chunks of the head.
        update: what the optimizer's step needs on top, when activations are gone again.
        process: libraries, or the CUDA context.
        segment: the weight segments, one set a node, which its ranks map; host memory.
        host: what is offloaded; host memory.
        keeps_freed: the allocator does not give freed blocks of this size back (glibc's, on a CPU), so that
            an update comes on top of activations that are gone.
    """

    weights: int
    gathered: int
    gradients: int
    optimizer: int
    activations: int
    vision: int
    logits: int
    update: int
    process: int
    segment: int
    host: int
    keeps_freed: bool

    @property
    def peak(self) -> int:
        """Peak of the device: what always stays, and the larger of a backward pass and an update, or both."""
        stays = self.weights + self.gathered + self.gradients + self.optimizer + self.process
        backward = self.activations + self.vision + self.logits
        return stays + (backward + self.update if self.keeps_freed else max(backward, self.update))

    @property
    def kept(self) -> int:
        """Weights and optimizer states on the device, which a rank copies to host memory to give them up."""
        return self.weights + self.optimizer


def rank_memory(shape: ModelShape, work: Workload, config: Config, device: str) -> RankMemory:
    """The parts of a rank's peak.

    Args:
        shape: of the model.
        work: of one step.
        config: the whole config.
        device: "cpu" or "cuda".
    """
    ranks, size = config.trainer.world_size, shape.weight_bytes
    live = _live(shape, size)
    trained = [-(-model.num_trained // ranks) for model in trained_models(shape)]
    states = sum(-(-state_bytes(model, config) // ranks) for model in trained_models(shape))
    buckets = [
        min(model.num_trained, BUCKET_PARAMS) if device == "cpu" else BUCKET_PARAMS
        for model in trained_models(shape)
    ]
    bucket = sum(buckets) * FLOAT32
    memory = RankMemory(
        weights=num_copies(config) * held_bytes(shape) // ranks
        + (teacher_bytes(shape) + critic_bytes(shape)) // ranks,
        gathered=0 if ranks == 1 else live,
        gradients=sum(trained) * FLOAT32 + bucket,
        optimizer=states,
        activations=max(
            *(_language_activations(model, work, config, device) for model in trained_models(shape)),
            _teacher_pass(shape, work),
        ),
        vision=max(_vision_activations(model, work, config, device) for model in trained_models(shape)),
        logits=_logits(shape, work, config, device),
        update=max(_update_bytes(model, config, device) for model in trained_models(shape)),
        process=PROCESS_BYTES[device],
        segment=_num_segments(config) * num_sent(shape, config) * size,
        host=trained[0] * FLOAT32 if keeps_mean(config) else 0,
        keeps_freed=device == "cpu",
    )
    return memory if device == "cpu" else _offloaded(memory, shape, config, bucket)


def held_bytes(shape: ModelShape) -> int:
    """Bytes of a model's weights and adapters, as all ranks hold them together."""
    whole = (shape.num_params + shape.adapters - shape.num_rounded) * shape.weight_bytes
    return whole + int(shape.num_rounded * BYTES_PER_WEIGHT)


def state_bytes(model: ModelShape, config: Config) -> int:
    """The float32 copy of a model's trained weights and the optimizer's moments, whole."""
    moment = MOMENT_BYTES[config.optim.state]
    of_muon = model.num_matrix_weights if config.optim.name == "muon" else 0  # with one moment, not two
    return int(model.num_trained * (FLOAT32 + 2 * moment) - of_muon * moment)


def num_copies(config: Config) -> int:
    """Models that a rank has a slice of: the policy, and without LoRA the frozen reference."""
    return 2 if config.has_reference and config.lora is None else 1


def keeps_mean(config: Config) -> bool:
    """Whether a rank has its slices of a moving reference a second time, in float32 in host memory."""
    reference = config.algorithm.reference
    return reference.every is not None and reference.mix < 1 and config.model.dtype != "float32"


def teacher_bytes(shape: ModelShape) -> int:
    """Weights of algorithm.teacher, whole; 0 without one."""
    return shape.teacher.num_params * shape.weight_bytes if shape.teacher is not None else 0


def trained_models(shape: ModelShape) -> list[ModelShape]:
    """The policy, and the critic if there is one: they are trained one after the other."""
    return [shape, *([shape.critic] if shape.critic is not None else [])]


def critic_bytes(shape: ModelShape) -> int:
    """Weights of algorithm.critic, whole; 0 without one."""
    critic = shape.critic
    return held_bytes(critic) if critic is not None else 0


def _live(shape: ModelShape, size: int) -> int:
    """Gathered weights: of one model at a time, since a teacher's pass is over when the policy's begins."""
    models = [*trained_models(shape), *([shape.teacher] if shape.teacher is not None else [])]
    return max(min(model.num_params, MAX_LIVE_PARAMS) for model in models) * size


def _teacher_pass(shape: ModelShape, work: Workload) -> int:
    """What one layer of a teacher holds at a time, without a backward pass: before the policy's own pass."""
    if shape.teacher is None:
        return 0
    stack = shape.teacher.language
    return layer_values(stack) * work.slice_tokens * shape.weight_bytes


def _offloaded(memory: RankMemory, shape: ModelShape, config: Config, bucket: int) -> RankMemory:
    """The same with what the config offloads in host memory, or on a disk.

    DeepSpeed's gradients follow the optimizer's states, as a sum over micro-batches and for the update.
    """
    trainer, mean = config.trainer, memory.host
    if trainer.offload_optimizer:
        gradients = memory.gradients - bucket
        update = memory.update - max(_flat_bytes(config, model) for model in trained_models(shape))
        host = mean + memory.optimizer + 2 * gradients + update
        memory = replace(memory, optimizer=0, update=0, gradients=bucket, host=host)
    teacher = config.algorithm.teacher
    if trainer.offload_parameters:
        moved = memory.weights
    else:
        moved = teacher_bytes(shape) // trainer.world_size if teacher is not None and teacher.offload else 0
    if moved:
        live = _live(shape, shape.weight_bytes)
        memory = replace(memory, weights=memory.weights - moved, gathered=live, host=memory.host + moved)
    return memory if trainer.offload_dir is None else replace(memory, host=mean)


def _num_segments(config: Config) -> int:
    """One that holds the weights; with continuous generation one more, see `vlrl.weights.places`."""
    if config.weights.transport != "shared_memory":
        return 0
    return 2 if config.generator.mode == "continuous" else 1


def num_sent(shape: ModelShape, config: Config) -> int:
    """Parameters of a version: all of the merged model's, or the adapters' alone."""
    alone = config.lora is not None and config.lora.sync == "adapter"
    return shape.adapters if alone else shape.num_params


def _language_activations(shape: ModelShape, work: Workload, config: Config, device: str) -> int:
    """Ranks that share a micro-batch have a slice of its tokens, in attention all tokens of some heads."""
    size, tokens, num_slices = shape.weight_bytes, work.slice_tokens, work.num_slices
    kind = config.trainer.attention
    if kind == "auto":
        kind = "flex" if device == "cuda" else "nodes"
    mask, num_keys = 0, work.micro_tokens
    if kind == "dense":
        mask = work.micro_tokens**2
    elif kind == "blocks" and work.micro_pairs <= KEPT_PAIRS:  # of more, nothing is kept but the inputs
        mask, num_keys = work.micro_pairs, work.micro_keys
    repeated = (device == "cuda" and kind != "flex") or shape.language.num_key_heads % num_slices > 0
    keys = key_values(shape.language, num_keys, repeated=repeated) // num_slices
    recomputed = recomputes(config.trainer.gradient_checkpointing, "language")
    saved = stack_bytes(shape.language, tokens, keys, size, recomputed)
    holes = _adapter_bytes(shape, "language_layers", tokens, recomputed, config, device)
    # A 4-bit layer's whole weight, made for its product, and what bitsandbytes makes it of.
    holes += 2 * shape.largest_rounded * size
    return saved + holes + mask * size + 3 * tokens * shape.language.hidden * size


def _adapter_bytes(
    shape: ModelShape, part: str, num_tokens: int, recomputed: bool, config: Config, device: str
) -> int:
    """What adapters take beside what autograd saves of a layer without them.

    With DoRA the layer's own product and the adapter's, which the magnitudes' gradient needs. On a CPU an
    adapter's product and the same scaled too: given back at once and not used again, since what autograd
    saves next to them is smaller or larger, so glibc's heap keeps their places as holes.
    """
    values = (2 if config.lora is not None and config.lora.dora else 0) + (0 if device == "cuda" else 2)
    layers = (shape.language if part == "language_layers" else shape.vision).num_layers
    found = values * shape.adapted_outputs.get(part, 0) * num_tokens * shape.weight_bytes
    return found // layers if recomputed else found


def _vision_activations(shape: ModelShape, work: Workload, config: Config, device: str) -> int:
    patches, size = work.slice_patches, shape.weight_bytes
    pixels = patches * 3 * 2 * shape.patch**2 * FLOAT32
    keys = key_values(shape.vision, patches, repeated=True)
    if not shape.trained.get("vision_tower"):
        return pixels + (layer_values(shape.vision) * patches + keys) * size
    recomputed = recomputes(config.trainer.gradient_checkpointing, "vision")
    holes = _adapter_bytes(shape, "vision_tower", patches, recomputed, config, device)
    return pixels + holes + stack_bytes(shape.vision, patches, keys, size, recomputed)


def _update_bytes(model: ModelShape, config: Config, device: str) -> int:
    """What an update makes: flat gradients, and for AdamW in 8 bit and Muon's more of its slice's size."""
    ranks, of_adamw, more = config.trainer.world_size, model.num_trained, 0
    if config.optim.name == "muon":
        of_adamw -= model.num_matrix_weights  # which are moved in place, one whole matrix at a time
        more = 0 if fuses_update(config, device) else 2
    elif config.optim.state == "8bit":
        more = 5 if device == "cpu" else 2  # bitsandbytes' own way on a CPU
    return _flat_bytes(config, model) + more * min(-(-of_adamw // ranks), UPDATED_PARAMS) * FLOAT32


def _flat_bytes(config: Config, model: ModelShape) -> int:
    """The gradients of a rank's slice in one piece, of as many parameters as are updated at once."""
    return min(-(-model.num_trained // config.trainer.world_size), UPDATED_PARAMS) * FLOAT32


def _logits(shape: ModelShape, work: Workload, config: Config, device: str) -> int:
    """Chunks in float32, two or with a cap three, one of the weights' type; the head's whole gradient."""
    whole = -(-work.micro_targets // work.num_slices) * shape.vocab * FLOAT32
    chunk = min(chunk_bytes_on(device, config.trainer.logits_chunk_mib), whole)
    head = shape.vocab * shape.language.hidden * shape.weight_bytes
    trained = shape.trained.get("head", 0) + shape.trained.get("embeddings", 0) > 0
    num_chunks = 3 if shape.caps_logits else 2
    return num_chunks * chunk + chunk * shape.weight_bytes // FLOAT32 + (head if trained else 0)
