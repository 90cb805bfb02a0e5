"""Changes of a config that would make it fit: each is tried by predicting again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from vlrl.config import Config, parse_config
from vlrl.errors import ConfigError
from vlrl.plan.predict import Plan, PlannedMachine, kv_bytes_per_token, predict
from vlrl.plan.shapes import ModelShape, read_shape
from vlrl.plan.workload import Prompts

ENGINE_SEQUENCES = 8
"""Of max_model_len tokens that a smaller engine still holds at once."""
LORA_RANK = 32
MOST_RANKS = 64
COST_TIME_ONLY = frozenset(
    f"{section}.{name}"
    for section, names in {
        "trainer": (
            "gradient_checkpointing",
            "max_tokens_per_micro_batch",
            "offload_optimizer",
            "offload_parameters",
        ),
        "generator": ("gpu_memory_utilization", "cpu_kv_cache_gib"),
    }.items()
    for name in names
)
"""Changes after which the same parameters are trained by the same formula on the same machine, slower."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What was found, and what was tried.

    Attributes:
        fitting: ("key=value …", the plan with it), what only costs time first.
        tried: every "key=value …" that was tried.
        best: of these the one that needs least, with its plan; None if none was tried.
    """

    fitting: list[tuple[str, Plan]]
    tried: list[str]
    best: tuple[str, Plan] | None


def fitting_changes(
    config: Config, prompts: Prompts, machine: PlannedMachine, *, engine: bool = True
) -> Changes:
    """Each change alone, and together those that only cost time; if that is not enough, all in turn."""
    planned = _planner(prompts, machine, engine)
    base = planned(config)
    tried: list[tuple[str, Plan]] = []
    found: dict[str, tuple[str, Plan]] = {}
    mild = False
    for change in _changes(config, machine, base):
        if changed := _with(config, change):
            plan = planned(changed)
            tried.append((" ".join(change), plan))
            if plan.fits(machine):
                found.setdefault(_key(change), tried[-1])  # of several values of a key the mildest
                mild = mild or _key(change) in COST_TIME_ONLY
    if not mild and (together := _together(config, machine, planned, tried, COST_TIME_ONLY)):
        found = {"": together, **found}
    if not found and (together := _together(config, machine, planned, tried, None)):
        found = {"": together}
    best = min(tried, key=lambda pair: pair[1].needed_bytes, default=None)
    return Changes(list(found.values()), [keys for keys, _ in tried], best)


def _together(
    config: Config,
    machine: PlannedMachine,
    planned: Callable[[Config], Plan],
    tried: list[tuple[str, Plan]],
    keys: Collection[str] | None,
) -> tuple[str, Plan] | None:
    """Changes of these keys (all if None), each on top of those before, until they fit; the needed ones."""
    taken: list[tuple[str, ...]] = []
    for change in _in_turn(config, machine, planned, keys):
        taken.append(change)
        tried.append((_words(taken), planned(_changed(config, taken))))
        if tried[-1][1].fits(machine):
            needed = _without_needless(config, taken, machine, planned)
            return _words(needed), planned(_changed(config, needed))
    return None


def _planner(prompts: Prompts, machine: PlannedMachine, engine: bool) -> Callable[[Config], Plan]:
    """`predict`, counting a model once for all configs that count it alike."""
    shapes: dict[str, ModelShape] = {}

    def planned(config: Config) -> Plan:
        key = f"{config.model.model_dump_json()} {config.lora and config.lora.model_dump_json()}"
        if key not in shapes:
            shapes[key] = read_shape(config)
        return predict(config, prompts, machine, shapes[key], engine=engine)

    return planned


def _changes(config: Config, machine: PlannedMachine, plan: Plan) -> Iterator[tuple[str, ...]]:
    """Single changes as overrides, from those that only cost time to those that train less or need more."""
    trainer, generator, gpu = config.trainer, config.generator, machine.device == "cuda"
    floor = generator.max_model_len
    if trainer.gradient_checkpointing is not True:
        yield ("trainer.gradient_checkpointing=true",)
    if trainer.max_tokens_per_micro_batch > floor:
        yield (f"trainer.max_tokens_per_micro_batch={max(floor, trainer.max_tokens_per_micro_batch // 4)}",)
    yield from _engine_changes(config, machine, plan)
    if gpu and not trainer.offload_optimizer:
        yield ("trainer.offload_optimizer=true",)
    if gpu and not trainer.offload_parameters:
        yield ("trainer.offload_parameters=true",)
    size = 2 * trainer.sequence_parallel
    if gpu and trainer.world_size % size == 0 and plan.shape.language.num_heads % size == 0:
        yield (f"trainer.sequence_parallel={size}",)
    if config.model.dtype == "float32":
        yield ("model.dtype=bfloat16",)
    shares_memory = not gpu and config.weights.transport == "shared_memory"
    if shares_memory and config.lora is not None and config.lora.sync == "merged":
        yield ("lora.sync=adapter",)
    if config.optim.state == "float32":
        yield ("optim.state=8bit",)
    if config.algorithm.kl_coef > 0:
        yield ("algorithm.kl_coef=0",)
    if config.lora is None:
        if not config.model.freeze:
            yield ("model.freeze=[vision_tower,projector]",)
        yield (f"lora.rank={LORA_RANK}", *(["model.freeze=[]"] if config.model.freeze else []))
    ranks = trainer.world_size
    while gpu and (ranks := 2 * ranks) <= MOST_RANKS:
        yield (f"trainer.num_ranks={ranks}",)


def _engine_changes(config: Config, machine: PlannedMachine, plan: Plan) -> Iterator[tuple[str, ...]]:
    """An engine of the size that it needs, or split over several GPUs."""
    generator = config.generator
    if machine.device == "cpu":
        if generator.cpu_kv_cache_gib > 1:
            yield ("generator.cpu_kv_cache_gib=1",)
        return
    if not plan.engine_floor_bytes:
        return
    sequence = kv_bytes_per_token(plan.shape) * generator.max_model_len
    enough = plan.engine_floor_bytes + (ENGINE_SEQUENCES - 1) * sequence // generator.tensor_parallel_size
    share = -(-100 * enough // machine.memory_bytes) / 100 if machine.memory_bytes else 1.0
    if not plan.engine_fits and share <= 0.9:
        yield (f"generator.gpu_memory_utilization={share:g}",)
    parallel = 2 * generator.tensor_parallel_size
    if not plan.engine_fits and plan.shape.language.num_heads % parallel == 0:
        yield (f"generator.tensor_parallel_size={parallel}", "generator.gpu_memory_utilization=0.9")


def _in_turn(
    config: Config, machine: PlannedMachine, planned: Callable[[Config], Plan], keys: Collection[str] | None
) -> Iterator[tuple[str, ...]]:
    """Each change on top of those before it; ranks, and an engine's parts, are doubled again and again."""
    done, again = set[str](), ("trainer.num_ranks", "generator.tensor_parallel_size")
    while True:
        for change in _changes(config, machine, planned(config)):
            key = _key(change)
            wanted = key not in done and (keys is None or key in keys)
            changed = _with(config, change) if wanted else None
            if changed is not None:
                break
            done.add(key)
        else:
            return
        if key not in again:
            done.add(key)
        config = changed
        yield change


def _with(config: Config, change: tuple[str, ...]) -> Config | None:
    """The config with a change, as a person would type it; None if the config refuses it."""
    try:
        return parse_config(config.model_dump(mode="json"), overrides=change)
    except ConfigError:
        return None


def _changed(config: Config, changes: list[tuple[str, ...]]) -> Config:
    tree = config.model_dump(mode="json")
    return parse_config(tree, overrides=[key for change in changes for key in change])


def _without_needless(
    config: Config,
    changes: list[tuple[str, ...]],
    machine: PlannedMachine,
    planned: Callable[[Config], Plan],
) -> list[tuple[str, ...]]:
    """The overrides without which the others do not fit; of two of which one is enough the harsher goes."""
    kept: list[tuple[str, ...]] = [(override,) for change in changes for override in change]
    for change in reversed(kept):
        fewer = [other for other in kept if other != change]
        try:
            if planned(_changed(config, fewer)).fits(machine):
                kept = fewer
        except ConfigError:
            continue
    return kept


def _key(change: tuple[str, ...]) -> str:
    return change[0].partition("=")[0]


def _words(changes: list[tuple[str, ...]]) -> str:
    """The changes as overrides on a command line; the last one counts if a key was changed twice."""
    last = {key.partition("=")[0]: key for change in changes for key in change}
    return " ".join(last.values())
