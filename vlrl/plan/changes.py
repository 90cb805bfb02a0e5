"""Changes of a config, or of the number of GPUs, that would make it fit: each is tried by planning again."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from vlrl.config import Config, parse_config
from vlrl.engine.arguments import memory_share
from vlrl.errors import ConfigError, ResourceError
from vlrl.plan.machine import GPUS_OF_A_NODE, PlannedMachine
from vlrl.plan.predict import Plan, predict
from vlrl.plan.shapes import ModelShape, read_shape
from vlrl.plan.workload import Prompts

LORA_RANK = 32
MOST_GPUS = 64
NODES, GPUS_PER_NODE = "--nodes", "--gpus-per-node"
COST_TIME_ONLY = frozenset(
    f"{section}.{name}"
    for section, names in {
        "trainer": (
            "gradient_checkpointing",
            "max_tokens_per_micro_batch",
            "offload_optimizer",
            "offload_parameters",
        ),
        "algorithm.teacher": ("offload",),
        "generator": ("gpu_memory_utilization", "cpu_kv_cache_gib"),
        "weights": ("transport",),
    }.items()
    for name in names
)
"""Changes after which the same parameters are trained by the same formula on the same machine, slower."""

Change: TypeAlias = tuple[str, ...]
"""Words of `vlrl plan`'s command line: overrides such as optim.state=8bit, or --gpus-per-node=8."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes that make a plan fit, and those that were tried.

    Attributes:
        fitting: (the change's words, the plan with it), what only costs time first.
        tried: words of every change that was tried and makes a difference.
        best: of these the one that needs least, with its plan; None if none was tried.
    """

    fitting: list[tuple[str, Plan]]
    tried: list[str]
    best: tuple[str, Plan] | None


@dataclass(frozen=True, slots=True)
class _Setting:
    """What is changed: a config, and how many GPUs it is planned on."""

    config: Config
    machine: PlannedMachine


def fitting_changes(
    config: Config, prompts: Prompts, machine: PlannedMachine, *, engine: bool = True
) -> Changes:
    """Each change alone, and together those that only cost time; if that is not enough, all in turn."""
    return _Search(prompts, engine).changes(_Setting(config, machine))


class _Search:
    """Tries changes, counting a model once for all configs that count it alike."""

    def __init__(self, prompts: Prompts, engine: bool) -> None:
        self._prompts, self._engine = prompts, engine
        self._shapes: dict[str, ModelShape] = {}
        self._tried: list[tuple[str, Plan]] = []

    def changes(self, base: _Setting) -> Changes:
        """What `fitting_changes` returns."""
        plan = self._planned(base)
        found: dict[str, tuple[str, Plan]] = {}
        mild = False
        for change in _changes(base, plan):
            after = self._after(base, change)
            if after is None or _is_alike(after[1], plan):
                continue
            self._tried.append((" ".join(change), after[1]))
            if after[1].fits(base.machine):
                found.setdefault(_key(change), self._tried[-1])  # of several values of a key the mildest
                mild = mild or _key(change) in COST_TIME_ONLY
        if not mild and (together := self._together(base, COST_TIME_ONLY)):
            found = {"": together, **found}
        if not found and (together := self._together(base, None)):
            found = {"": together}
        best = min(self._tried, key=lambda pair: pair[1].needed_bytes, default=None)
        return Changes(list(found.values()), [words for words, _ in self._tried], best)

    def _planned(self, setting: _Setting) -> Plan | None:
        """None if there are too few GPUs for what is asked for."""
        config = setting.config
        key = f"{config.model.model_dump_json()} {config.lora and config.lora.model_dump_json()}"
        if key not in self._shapes:
            self._shapes[key] = read_shape(config)
        try:
            return predict(config, self._prompts, setting.machine, self._shapes[key], engine=self._engine)
        except ResourceError:
            return None

    def _after(self, setting: _Setting, change: Change) -> tuple[_Setting, Plan] | None:
        """The setting with a change, and its plan; None if the config or the number of GPUs forbids it."""
        changed = _with(setting, change)
        plan = self._planned(changed) if changed is not None else None
        return (changed, plan) if changed is not None and plan is not None else None

    def _together(self, base: _Setting, keys: Collection[str] | None) -> tuple[str, Plan] | None:
        """Changes of these keys (all if None), each on top of those before, until they fit: those needed."""
        taken: list[Change] = []
        for change, plan in self._in_turn(base, keys):
            taken.append(change)
            self._tried.append((_words(taken), plan))
            if plan.fits(base.machine):
                return self._without_needless(base, taken)
        return None

    def _in_turn(self, setting: _Setting, keys: Collection[str] | None) -> Iterator[tuple[Change, Plan]]:
        """Each change on top of those before it, if it helps; GPUs are doubled again and again."""
        done: set[str] = set()
        again = ("GPUs", "generator.tensor_parallel_size")
        before = self._planned(setting)
        while True:
            for change in _changes(setting, before):
                key = _key(change)
                wanted = key not in done and (keys is None or key in keys)
                after = self._after(setting, change) if wanted else None
                if after is not None and not _is_alike(after[1], before):
                    break  # what has no effect yet may have one after others
            else:
                return
            if key not in again:
                done.add(key)
            setting, before = after
            yield change, before

    def _without_needless(self, base: _Setting, changes: list[Change]) -> tuple[str, Plan]:
        """The words without which the others do not fit; of two of which one is enough the harsher goes."""
        kept: list[Change] = [(word,) for change in changes for word in change]
        for change in reversed(kept):
            fewer = [other for other in kept if other != change]
            after = self._after(base, tuple(word for other in fewer for word in other))
            if after is not None and after[1].fits(base.machine):
                kept = fewer
        needed = tuple(word for change in kept for word in change)
        after = self._after(base, needed)
        assert after is not None  # it was planned before
        return _words(kept), after[1]


def _is_alike(plan: Plan, before: Plan | None) -> bool:
    """Whether two plans need the same of GPUs, host and engine, so that a change has no effect."""
    return before is not None and all(
        getattr(plan, name) == getattr(before, name)
        for name in ("needed_bytes", "needed_host_bytes", "engine_bytes", "engine_floor_bytes")
    )


def _changes(setting: _Setting, plan: Plan | None) -> Iterator[Change]:
    """Single changes, from those that only cost time to those that train less or need more GPUs."""
    config, machine = setting.config, setting.machine
    trainer, gpu = config.trainer, machine.device == "cuda"
    if trainer.gradient_checkpointing is not True:
        yield ("trainer.gradient_checkpointing=true",)
    floor = config.generator.max_model_len
    if trainer.max_tokens_per_micro_batch > floor:
        yield (f"trainer.max_tokens_per_micro_batch={max(floor, trainer.max_tokens_per_micro_batch // 4)}",)
    yield from _engine_changes(setting, plan)
    if gpu and not trainer.offload_optimizer:
        yield ("trainer.offload_optimizer=true",)
    teacher = config.algorithm.teacher
    if gpu and not trainer.offload_parameters:
        if teacher is not None and not teacher.offload:
            yield ("algorithm.teacher.offload=true",)
        yield ("trainer.offload_parameters=true",)
    if plan is not None and gpu and not plan.host_fits(machine) and plan.memory.segment:
        yield ("weights.transport=disk",)
    size = 2 * trainer.sequence_parallel
    num_ranks = len(plan.layout.ranks) if plan is not None else trainer.world_size
    if gpu and plan is not None and num_ranks % size == 0 and plan.shape.language.num_heads % size == 0:
        yield (f"trainer.sequence_parallel={size}",)
    if config.model.dtype == "float32":
        yield ("model.dtype=bfloat16",)
    if not gpu and config.lora is not None and config.lora.sync == "merged":
        yield ("lora.sync=adapter",)
    yield from _changes_of_training(config)
    if gpu:
        yield from _more_gpus(setting)


def _engine_changes(setting: _Setting, plan: Plan | None) -> Iterator[Change]:
    """An engine that has enough memory for its model, or is split over several GPUs."""
    generator = setting.config.generator
    if setting.machine.device == "cpu":
        if generator.cpu_kv_cache_gib > 1:
            yield ("generator.cpu_kv_cache_gib=1",)
        return
    if plan is None or not plan.engine_floor_bytes:
        return
    usual = generator.model_copy(update={"gpu_memory_utilization": None})
    above = memory_share(generator, on_gpu=True) - memory_share(usual, on_gpu=True)
    if above > 0 if plan.engine_fits else above < 0:
        yield ("generator.gpu_memory_utilization=null",)
    parallel = 2 * generator.tensor_parallel_size
    if not plan.engine_fits and plan.shape.language.num_heads % parallel == 0:
        yield (f"generator.tensor_parallel_size={parallel}",)


def _changes_of_training(config: Config) -> Iterator[Change]:
    """Less is trained, or by another formula."""
    if config.optim.state == "float32" and config.optim.name == "adamw":
        yield ("optim.state=8bit",)
    if config.algorithm.kl_coef > 0:
        yield ("algorithm.kl_coef=0",)
    if config.lora is None:
        if not config.model.freeze:
            yield ("model.freeze=[vision_tower,projector]",)
        yield (f"lora.rank={LORA_RANK}", *(["model.freeze=[]"] if config.model.freeze else []))


def _more_gpus(setting: _Setting) -> Iterator[Change]:
    """All GPUs of the machine for a config that takes fewer, or more machines."""
    trainer, machine = setting.config.trainer, setting.machine
    per_node, num_nodes = machine.gpus_per_node, machine.num_nodes
    if per_node is None:
        ranks = trainer.num_ranks or GPUS_OF_A_NODE
        while (ranks := 2 * ranks) <= MOST_GPUS:
            yield (f"trainer.num_ranks={ranks}",)
        return
    freed = ("trainer.num_ranks=null",) if trainer.num_ranks is not None else ()
    if trainer.num_ranks is not None and trainer.num_ranks < num_nodes * per_node:
        yield freed
    while 2 * num_nodes * per_node <= MOST_GPUS:
        if per_node < GPUS_OF_A_NODE:
            per_node = min(2 * per_node, GPUS_OF_A_NODE)
            yield (f"{GPUS_PER_NODE}={per_node}", *freed)
        else:
            num_nodes *= 2
            yield (f"{NODES}={num_nodes}", f"{GPUS_PER_NODE}={per_node}", *freed)


def _with(setting: _Setting, change: Change) -> _Setting | None:
    """The setting with a change, as a person would type it; None if the config refuses it."""
    numbers = dict(word.split("=") for word in change if word.startswith("--"))
    machine = replace(
        setting.machine,
        num_nodes=int(numbers.get(NODES, setting.machine.num_nodes)),
        gpus_per_node=int(numbers[GPUS_PER_NODE])
        if GPUS_PER_NODE in numbers
        else setting.machine.gpus_per_node,
    )
    overrides = [word for word in change if not word.startswith("--")]
    try:
        return _Setting(parse_config(setting.config.model_dump(mode="json"), overrides=overrides), machine)
    except ConfigError:
        return None


def _key(change: Change) -> str:
    """What is changed; more GPUs are one thing, whoever has them."""
    key = change[0].partition("=")[0]
    return "GPUs" if key in (NODES, GPUS_PER_NODE, "trainer.num_ranks") else key


def _words(changes: list[Change]) -> str:
    """The changes as words of a command line; the last one counts if a key was changed twice."""
    last = {word.partition("=")[0]: word for change in changes for word in change}
    return " ".join(last.values())
