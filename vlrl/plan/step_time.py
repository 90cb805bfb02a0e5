"""How long a step takes on GPUs, part by part, and which part is the longest: the scaling model.

Every part is counted from the workload and the layout; the rates are those of `vlrl.plan.rates`. Rewards and
environments are not counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from vlrl.config import Config
from vlrl.model.lora import sent_alone
from vlrl.model.parts import VISION_PARTS
from vlrl.placement.layout import Layout
from vlrl.plan import rates
from vlrl.plan.duration import forward, train_flops, train_seconds
from vlrl.plan.machine import PlannedMachine
from vlrl.plan.memory import RankMemory, critic_bytes, num_copies, num_sent, teacher_bytes
from vlrl.plan.phases import ENGINE_BUFFER_BYTES, EngineMemory, kv_bytes_per_token
from vlrl.plan.saved.layers import FLOAT32
from vlrl.plan.shapes import ModelShape
from vlrl.plan.workload import Prompts, Workload

PARTS = ("generation", "workers", "driver", "packing", "media", "training", "sync")


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step.

    Attributes:
        generation: engines read prompts and decode.
        workers: rollout workers make and read messages, side by side.
        driver: the one process that hands out work to them and hears of every turn.
        packing: one rollout worker, or the driver, lays out the tokens of all ranks.
        media: images are sent to ranks, and prepared by ranks and engines.
        training: all optimizer steps on all ranks.
        sync: weights go to the engines, and GPUs change hands.
        overlaps: asynchronous: rollouts go on while the trainer works.
        concurrent: workers and driver work while engines generate, for other episodes.
        num_tokens: generated.
        num_gpus: that the run has.
    """

    generation: float
    workers: float
    driver: float
    packing: float
    media: float
    training: float
    sync: float
    overlaps: bool
    concurrent: bool
    num_tokens: int
    num_gpus: int

    @property
    def total(self) -> float:
        """The step from its beginning to the next one's."""
        parts = self.generation, self.workers, self.driver
        rollout = max(parts) if self.concurrent else sum(parts)
        learning = self.packing + self.media + self.training
        return (max(rollout, learning) if self.overlaps else rollout + learning) + self.sync

    @property
    def bottleneck(self) -> str:
        """The longest part."""
        return max(PARTS, key=lambda part: float(getattr(self, part)))

    @property
    def tokens_per_gpu(self) -> float:
        """Generated and trained a second, for each GPU of the run."""
        return self.num_tokens / self.total / self.num_gpus


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """Sizes of a step, from which its time is predicted.

    Attributes:
        shape: of the model.
        work: of the step.
        prompts: that the work was counted from.
        config: resolved for the layout.
        machine: that is planned for.
        layout: who is where.
        rank: memory of a rank.
        engine: memory of an engine.
    """

    shape: ModelShape
    work: Workload
    prompts: Prompts
    config: Config
    machine: PlannedMachine
    layout: Layout
    rank: RankMemory
    engine: EngineMemory

    @property
    def ranks_are_spread(self) -> bool:
        """Whether ranks are on several nodes."""
        return len({slot.node for slot in self.layout.ranks}) > 1

    @property
    def network(self) -> float:
        """Bytes/s that a node reaches to the others."""
        return self.machine.network_bytes_per_s * rates.NETWORK_REACHED.value


def step_time(step: PlannedStep) -> StepTime:
    """One step's on GPUs; without engines its training alone."""
    config, layout, generates = step.config, step.layout, bool(step.layout.engines)
    operations = train_flops(step.shape, step.work, config)
    computing = train_seconds(operations, len(layout.ranks), step.machine.rate, "cuda")
    return StepTime(
        generation=_generation(step) if generates else 0.0,
        workers=_playing(step) / max(1, len(layout.workers)) if generates else 0.0,
        driver=_turns_played(step) * rates.DRIVER_TURN.value if layout.workers else 0.0,
        packing=step.work.step_turns * rates.PACK_TURN.value,
        media=_media(step),
        training=max(computing, _communication(step)) + _host_update(step),
        sync=_sync(step) if generates else 0.0,
        overlaps=config.asynchronous.streams,
        concurrent=config.asynchronous.streams or config.generator.mode == "continuous",
        num_tokens=step.work.step_targets,
        num_gpus=layout.num_gpus,
    )


def _generation(step: PlannedStep) -> float:
    """Prompts read once; then tokens, of as many completions as fit at once; then the longest one's rest."""
    shape, work, prompts, config = step.shape, step.work, step.prompts, step.config
    generator, num_engines = config.generator, len(step.layout.engines)
    episodes = config.rollout.prompts_per_step * config.rollout.group_size
    num_turns, length = work.step_turns // episodes, max(1, work.step_tokens // episodes)
    batch = min(-(-_episodes_at_once(step, num_turns) // num_engines), generator.max_num_seqs)
    batch = max(1, min(batch, _completions_in_cache(step, length)))
    tokens = _num_played(config) / num_engines / batch * prompts.completion_tokens
    waits = not config.asynchronous.streams  # else other groups are generated beside the longest one
    rest = max(0, prompts.longest_tokens - prompts.completion_tokens) * waits
    decoding = tokens * _token_seconds(step, batch, length // 2)
    decoding += rest * _token_seconds(step, 1, prompts.longest_tokens)
    operations = forward(shape.language, work.prompt_tokens, length // 2)
    operations += forward(shape.vision, work.step_patches, work.image_patches)
    rate = step.machine.rate * rates.PREFILL_REACHED.value
    return num_turns * decoding + operations / (num_engines * generator.tensor_parallel_size * rate)


def _episodes_at_once(step: PlannedStep, num_turns: int) -> int:
    """All of a step, or of those of several turns what episodes.max_episodes allows."""
    episodes = _num_played(step.config)
    return min(episodes, step.config.episodes.max_episodes) if num_turns > 1 else episodes


def _num_played(config: Config) -> int:
    """Episodes of a step, those too that are played as a baseline alone."""
    rollout = config.rollout
    return rollout.prompts_per_step * (rollout.group_size + config.algorithm.has_greedy_baseline)


def _turns_played(step: PlannedStep) -> float:
    """Turns of a step's episodes, of which `Workload.step_turns` are trained."""
    rollout = step.config.rollout
    trained = rollout.prompts_per_step * rollout.group_size
    return step.work.step_turns * _num_played(step.config) / trained


def _completions_in_cache(step: PlannedStep, length: int) -> int:
    """Completions of this length, prompt included, that an engine's KV cache holds at once."""
    parallel = step.config.generator.tensor_parallel_size
    free = (step.engine.reserved - step.engine.weights - ENGINE_BUFFER_BYTES) * parallel
    return max(0, free) // (kv_bytes_per_token(step.shape) * length)


def _token_seconds(step: PlannedStep, batch: int, context: int) -> float:
    """One token for each of a batch of completions: weights and caches read, products, and what is fixed."""
    shape, generator = step.shape, step.config.generator
    language = sum(count for part, count in shape.params.items() if part not in VISION_PARTS)
    read = language * shape.weight_bytes + batch * context * kv_bytes_per_token(shape)
    products = forward(shape.language, batch, 0) + 2.0 * batch * shape.vocab * shape.language.hidden
    product_s = products / (step.machine.rate * rates.PREFILL_REACHED.value)
    layer = rates.LAYER_EAGER if generator.enforce_eager else rates.LAYER
    return (
        max(read / rates.MEMORY_READ.value, product_s) / generator.tensor_parallel_size
        + shape.language.num_layers * layer.value
        + batch * rates.SEQUENCE.value
    )


def _playing(step: PlannedStep) -> float:
    """Every turn's messages, and every distinct image, in one process: a rollout worker, or the driver."""
    turns = _turns_played(step) * rates.WORKER_TURN.value
    return turns + _pixels(step) / 1e6 * rates.WORKER_IMAGE.value


def _media(step: PlannedStep) -> float:
    """Images made ready by each engine's thread and by each rank, and sent there from where they were made.

    Every node with rollout workers sends its own to the ranks; without workers the driver's node sends all.
    """
    pixels, engines, ranks = _pixels(step), step.layout.engines, step.layout.ranks
    in_engines = pixels / 1e6 * rates.ENGINE_IMAGE.value / len(engines) if engines else 0.0
    in_ranks = pixels / 1e6 * rates.RANK_IMAGE.value / len(ranks)
    senders = Counter(slot.node for slot in step.layout.workers) or Counter({0: 1})
    # The longest of the nodes' shares: a node does not push to its own ranks.
    seconds = [
        share * (1 / rates.OBJECT_STORE.value + elsewhere / rates.OBJECT_PUSH.value)
        for node, count in senders.items()
        for share in [pixels * rates.PIXEL_BYTES.value * count / senders.total()]
        for elsewhere in [sum(slot.node != node for slot in ranks) / len(ranks)]
    ]
    return in_engines + in_ranks + max(seconds)


def _pixels(step: PlannedStep) -> float:
    """Pixels of a step's distinct images."""
    return float(step.work.step_patches * step.shape.patch**2)


def _communication(step: PlannedStep) -> float:
    """ZeRO-3's: weights gathered forward and backward, gradients reduced in float32, a micro-batch each."""
    shape, config = step.shape, step.config
    if len(step.layout.ranks) == 1:
        return 0.0
    rate = min(rates.LINK.value, step.network) if step.ranks_are_spread else rates.LINK.value
    gathered = (1 + num_copies(config)) * shape.num_params * shape.weight_bytes + teacher_bytes(shape)
    reduced = shape.num_trained
    if shape.critic is not None and config.algorithm.critic is not None:
        updates = config.algorithm.critic.num_updates
        gathered += (1 + 2 * updates) * critic_bytes(shape)
        reduced += updates * shape.critic.num_trained
    passes = step.work.num_micro_batches * config.algorithm.num_minibatches
    return passes * (gathered + reduced * FLOAT32) / rate


def _host_update(step: PlannedStep) -> float:
    """The optimizer's step in host memory: gradients, masters and moments read, all but gradients written."""
    if not step.config.trainer.offload_optimizer:
        return 0.0
    critic, updated = step.config.algorithm.critic, step.shape.num_trained
    if step.shape.critic is not None and critic is not None:
        updated += critic.num_updates * step.shape.critic.num_trained
    of_rank = updated / len(step.layout.ranks) * 7 * FLOAT32
    return step.config.algorithm.num_minibatches * of_rank / rates.HOST_UPDATE.value


def _sync(step: PlannedStep) -> float:
    """A weight update, and with GPUs in turn the trainer's states out of them and back."""
    config = step.config
    sent = num_sent(step.shape, config) * step.shape.weight_bytes
    seconds = step.shape.num_tensors * rates.TENSOR.value
    if config.weights.transport == "broadcast":
        rate = (
            min(rates.BROADCAST.value, step.network) if step.layout.num_nodes > 1 else rates.BROADCAST.value
        )
        seconds += rates.BROADCAST_START.value + sent / rate
    elif config.weights.transport == "disk":
        seconds += 2 * sent / rates.DISK.value
    else:
        writers = len(step.layout.ranks)
        if step.ranks_are_spread:  # the first rank of each node gathers them and writes all there
            writers = 1
            seconds += sent / min(rates.LINK.value, step.network)
        of_gpu = sent / config.generator.tensor_parallel_size
        seconds += sent / writers / rates.SEGMENT_WRITE.value + of_gpu / rates.SEGMENT_LOAD.value
    if step.layout.takes_turns:
        asleep = step.engine.weights if sent_alone(config) is not None else 0
        seconds += 2 * (step.rank.kept + asleep) / rates.PINNED_COPY.value + rates.ENGINE_WAKE.value
    return seconds
