"""The one config tree: YAML plus dotted overrides, checked by pydantic before anything heavy is imported."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_origin

import yaml
from pydantic import BaseModel, Field, ValidationError, model_validator

from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.asynchronous import AsyncConfig, BatchConfig
from vlrl.config.data import DataConfig, MediaConfig, ProcessorConfig
from vlrl.config.engine import GeneratorConfig, WeightsConfig, require_use_of_servers
from vlrl.config.learning.baseline import require_baseline
from vlrl.config.learning.critic import require_place_for_critic
from vlrl.config.learning.policies import PolicyConfig, require_place_for_policies
from vlrl.config.learning.preferences import PreferencesConfig
from vlrl.config.learning.regularizers import require_effect
from vlrl.config.learning.replay import require_use_of_replay
from vlrl.config.learning.teacher import require_use_of_groups
from vlrl.config.memory import (
    LoraConfig,
    OptimConfig,
    ProfileConfig,
    VisionCacheConfig,
    require_sound_training,
)
from vlrl.config.names import nearest_key, renamed
from vlrl.config.options import (
    CheckpointConfig,
    EvalConfig,
    LoggingConfig,
    ModelConfig,
    ParityConfig,
    RayConfig,
    RewardList,
    RolloutConfig,
    RunConfig,
    ScoringConfig,
    Section,
    SftConfig,
    TrainerConfig,
)
from vlrl.config.paths import model_place, with_absolute_paths
from vlrl.config.rollout import EnvConfig, EpisodeConfig
from vlrl.config.section import named_list
from vlrl.config.strict_yaml import load_value, load_yaml
from vlrl.errors import ConfigError
from vlrl.registry.objects import with_names


class Config(Section):
    """A whole run. `vlrl config schema` prints this tree."""

    run: RunConfig = RunConfig()
    model: ModelConfig
    processor: ProcessorConfig = ProcessorConfig()
    media: MediaConfig = MediaConfig()
    data: DataConfig
    rewards: RewardList = Field(default_factory=list)
    """One or several; a name alone stands for {name: …}."""
    scoring: ScoringConfig = ScoringConfig()
    num_steps: int = Field(100, ge=1)
    """Training steps."""
    rollout: RolloutConfig = RolloutConfig()
    env: EnvConfig = EnvConfig()
    episodes: EpisodeConfig = EpisodeConfig()
    batch: BatchConfig = BatchConfig()
    asynchronous: AsyncConfig = AsyncConfig()
    algorithm: AlgorithmConfig = AlgorithmConfig()
    optim: OptimConfig = OptimConfig()
    trainer: TrainerConfig = TrainerConfig()
    lora: LoraConfig | None = None
    """Adapters; null trains the model itself."""
    policies: dict[str, PolicyConfig] = Field(default_factory=dict)
    """Several policies by name, for the agents of an environment; empty: one policy plays everybody."""
    placement: Literal["auto", "colocated", "split"] = "auto"
    """GPUs of trainer and engines. colocated: they share all GPUs and take turns, each giving its memory up
    for the other. split: each GPU belongs to a rank or to an engine, as asynchronous.mode=async needs. auto
    is split in async mode, else colocated. On CPUs nothing is given up, so there it makes no difference."""
    vision_cache: VisionCacheConfig = VisionCacheConfig()
    profile: ProfileConfig = ProfileConfig()
    generator: GeneratorConfig = GeneratorConfig()
    weights: WeightsConfig = WeightsConfig()
    parity: ParityConfig = ParityConfig()
    eval: EvalConfig = EvalConfig()
    checkpoint: CheckpointConfig = CheckpointConfig()
    logging: LoggingConfig = LoggingConfig()
    ray: RayConfig = RayConfig()
    sft: SftConfig = SftConfig()
    preferences: PreferencesConfig | None = None
    """Preference learning; null for all else. `vlrl dpo` without it takes the defaults."""

    @model_validator(mode="before")
    @classmethod
    def _objects_by_name(cls, tree: Any) -> Any:
        return with_names(tree) if isinstance(tree, dict) else tree

    @model_validator(mode="after")
    def _consistent(self) -> Config:
        prompts, minibatches = self.rollout.prompts_per_step, self.algorithm.num_minibatches
        if prompts % minibatches:
            raise ValueError(
                f"algorithm.num_minibatches={minibatches} does not divide "
                f"rollout.prompts_per_step={prompts}; set it to a divisor"
            )
        if self.asynchronous.streams and self.episodes.lockstep:
            raise ValueError(
                "asynchronous.mode=async generates for each episode as soon as it is ready, and "
                "episodes.lockstep=true makes every episode wait for the others; set episodes.lockstep=false"
            )
        branches, size = self.episodes.branching.num_branches, self.rollout.group_size
        if branches > 1 and (size % branches or size < 2 * branches):
            raise ValueError(
                f"episodes.branching.num_branches={branches} must divide rollout.group_size={size} into "
                "two or more trees, which are compared with each other; lower num_branches, or raise "
                "group_size to a multiple of it"
            )
        processes = self.env.num_processes if self.env.isolation == "process" else None
        if processes is not None and branches > processes:
            raise ValueError(
                f"episodes.branching.num_branches={branches} is above env.num_processes={processes}: the "
                "branches of a tree are played at the same time; lower num_branches, or raise num_processes"
            )
        if self.generator.max_num_batched_tokens < self.generator.max_num_seqs:
            raise ValueError(
                f"generator.max_num_batched_tokens={self.generator.max_num_batched_tokens} is below "
                f"generator.max_num_seqs={self.generator.max_num_seqs}: each running sequence takes a token "
                "of an engine step; raise max_num_batched_tokens, or lower max_num_seqs"
            )
        if self.trainer.max_tokens_per_micro_batch < self.generator.max_model_len:
            raise ValueError(
                f"trainer.max_tokens_per_micro_batch={self.trainer.max_tokens_per_micro_batch} is below "
                f"generator.max_model_len={self.generator.max_model_len}: the longest sequence would not "
                "fit; raise max_tokens_per_micro_batch, or lower max_model_len"
            )
        if self.rollout.max_tokens >= self.generator.max_model_len:
            raise ValueError(
                f"rollout.max_tokens={self.rollout.max_tokens} leaves no room for a prompt in "
                f"generator.max_model_len={self.generator.max_model_len}; lower max_tokens, or raise "
                "max_model_len"
            )
        return self

    @model_validator(mode="after")
    def _turns_in_sync_mode(self) -> Config:
        if self.placement == "colocated" and self.asynchronous.streams:
            raise ValueError(
                "placement=colocated lets trainer and engines take turns, asynchronous.mode=async has both "
                "work at once; set placement=split, or asynchronous.mode=sync"
            )
        return self

    @model_validator(mode="after")
    def _generation_mode(self) -> Config:
        generator = self.generator
        if generator.mode == "auto":
            mode = "continuous" if self.asynchronous.streams else "batch"
            self.generator = generator = generator.model_copy(update={"mode": mode})
        if self.asynchronous.streams and generator.mode == "batch":
            raise ValueError(
                "generator.mode=batch makes requests and weight updates wait for the running batch, so "
                "asynchronous.mode=async would generate little; leave generator.mode out"
            )
        if generator.max_concurrency is not None and generator.mode == "batch":
            raise ValueError(
                f"generator.max_concurrency={generator.max_concurrency} bounds what joins a running engine; "
                "with mode=batch max_num_seqs bounds what is decoded at once: set "
                "generator.mode=continuous, or generator.max_concurrency=null"
            )
        return self

    @model_validator(mode="after")
    def _correction(self) -> Config:
        algorithm = self.algorithm
        if algorithm.correction.kind == "auto":
            kind = "truncated" if self.model.dtype == "bfloat16" else "none"
            correction = algorithm.correction.model_copy(update={"kind": kind})
            self.algorithm = algorithm.model_copy(update={"correction": correction})
        return self

    @model_validator(mode="after")
    def _on_policy(self) -> Config:
        """A loss without a ratio needs a correction where tokens are older."""
        uncorrected = self.algorithm.correction.kind == "none"
        if self.asynchronous.streams and self.algorithm.loss.name == "policy_gradient" and uncorrected:
            raise ValueError(
                "algorithm.loss=policy_gradient has no ratio, and asynchronous.mode=async trains tokens of "
                "older weights; set algorithm.correction.kind=truncated, or asynchronous.mode=sync"
            )
        return self

    @model_validator(mode="after")
    def _what_teaches(self) -> Config:
        for require in (
            *(require_baseline, require_use_of_groups, require_effect, require_sound_training),
            *(require_use_of_replay, require_place_for_critic, require_place_for_policies),
            require_use_of_servers,
        ):
            require(self)
        if self.preferences is not None:
            self.preferences.require_default(self.algorithm, self.rollout.temperature)
        return self

    @model_validator(mode="after")
    def _absolute_paths(self) -> Config:
        self.model = self.model.model_copy(update={"path": model_place(self.model.path)})
        for name, section in self:
            if isinstance(section, Section):
                setattr(self, name, with_absolute_paths(section))
        return self

    @property
    def samples_per_update(self) -> int:
        """Completions, or episodes, that an optimizer step trains."""
        rollout = self.rollout
        return rollout.prompts_per_step * rollout.group_size // self.algorithm.num_minibatches

    @property
    def run_dir(self) -> Path:
        """Folder of this run."""
        return self.run.dir / self.run.name

    @property
    def has_reference(self) -> bool:
        """Whether the trainer computes the starting model's log-probabilities beside the policy's."""
        if self.preferences is not None:
            return self.preferences.has_reference
        return self.algorithm.kl_coef > 0

    @property
    def parity_tolerance(self) -> float:
        """Bound of |trainer - sampler| logprobs, in nats; see `ParityConfig.tolerance`."""
        if self.parity.tolerance is not None:
            return self.parity.tolerance
        return 1e-3 if self.model.dtype == "float32" else 0.5


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> Config:
    """Read a YAML file, apply `a.b=value` overrides (values are YAML), and check everything.

    Raises:
        ConfigError: for a missing file, bad YAML, an unknown key (naming the nearest), a wrong value.
    """
    path = Path(path)
    if not path.is_file():
        near = difflib.get_close_matches(path.name, [p.name for p in path.parent.glob("*.yaml")], n=1)
        hint = f"; did you mean {path.parent / near[0]}?" if near else ""
        raise ConfigError(f"config file {path} does not exist{hint}")
    try:
        tree = load_yaml(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {error}") from error
    if not isinstance(tree, dict):
        raise ConfigError(f"{path} must hold a mapping of sections such as model: and data:")
    return parse_config(tree, source=str(path), overrides=overrides)


def parse_config(tree: dict[str, Any], source: str = "config", overrides: Sequence[str] = ()) -> Config:
    """Apply overrides to a nested mapping and check it against the tree.

    Raises:
        ConfigError: naming the dotted key, what is wrong and the nearest known key.
    """
    for override in overrides:
        _apply_override(tree, override)
    try:
        return Config.model_validate(tree)
    except ValidationError as error:
        lines = [_explain(dict(e), tree) for e in error.errors()]
        raise ConfigError(f"{source}: " + "\n".join(lines)) from error


def field_paths(section: type[BaseModel] = Config, prefix: str = "") -> Iterator[str]:
    """Every dotted key of the tree, sections included; list items are left out, and names are NAME."""
    for name, info in section.model_fields.items():
        yield prefix + name
        inside = f"{prefix}{name}.NAME." if get_origin(info.annotation) is dict else f"{prefix}{name}."
        for candidate in (info.annotation, *getattr(info.annotation, "__args__", ())):
            if isinstance(candidate, type) and issubclass(candidate, BaseModel):
                yield from field_paths(candidate, inside)


def _apply_override(tree: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key:
        raise ConfigError(f"override {override!r} must look like section.key=value")
    _spell_out_parents(tree, key)
    *parents, leaf = _without_index_of_one(key, tree).split(".")
    node: Any = tree
    for parent in parents:
        node = _only_item(node, parent)
        if isinstance(node, list):
            node = node[_list_index(parent, key, node)]
        else:
            if node.get(parent) is None:
                node[parent] = {}
            node = node[parent]
        if not isinstance(node, dict | list):
            raise ConfigError(f"override {override!r}: {parent!r} is a value, not a section")
    value = load_value(text, f"override {override!r}")
    node = _only_item(node, leaf)
    if isinstance(node, list):
        node[_list_index(leaf, key, node)] = value
    else:
        node[leaf] = value


def _spell_out_parents(tree: dict[str, Any], key: str) -> None:
    """A name alone that stands for a mapping, as that mapping, where the override sets a part of it."""
    section, _, rest = key.partition(".")
    if section == "algorithm" and rest:
        algorithm = tree.get("algorithm")
        if isinstance(algorithm, str):
            tree["algorithm"] = algorithm = {"preset": algorithm}
        role, _, part = rest.partition(".")
        if part and isinstance(algorithm, dict) and isinstance(algorithm.get(role), str):
            algorithm[role] = {"name": algorithm[role]}
    data = tree.get("data")
    if section == "rewards" and isinstance(tree.get("rewards"), str | list) and rest:
        tree["rewards"] = named_list(tree["rewards"])
    split = rest.partition(".")[0]
    if section == "data" and isinstance(data, dict) and isinstance(data.get(split), str | list):
        data[split] = named_list(data[split])
    if section == "data" and ".sampler." in rest and isinstance(data, dict):
        sources = data.get(split)
        for source in sources if isinstance(sources, list) else [sources]:
            if isinstance(source, dict) and isinstance(source.get("sampler"), str):
                source["sampler"] = {"name": source["sampler"]}


def _only_item(node: Any, part: str) -> Any:
    """The item of a list of one, where a key of it is named without the index: data.train.limit."""
    single = isinstance(node, list) and len(node) == 1 and isinstance(node[0], dict) and not part.isdigit()
    return node[0] if single else node


def _without_index_of_one(key: str, tree: dict[str, Any]) -> str:
    """data.train.0.limit where data.train is one mapping and no list."""
    match = re.match(r"data\.(train|eval)\.0\.", key)
    data = tree.get("data")
    single = match and isinstance(data, dict) and isinstance(data.get(match[1]), dict)
    return key.replace(".0.", ".", 1) if single else key


def _list_index(part: str, key: str, items: list[Any]) -> int:
    if not part.isdigit() or int(part) >= len(items):
        raise ConfigError(f"override {key!r}: {part!r} must be an index below {len(items)}")
    return int(part)


def _explain(error: dict[str, Any], tree: dict[str, Any]) -> str:
    key = ".".join(_as_written(error["loc"], tree))
    if error["type"] == "extra_forbidden":
        known = list(field_paths())
        slip = difflib.get_close_matches(key, known, n=1, cutoff=0.75)
        # another project's section has keys of its own
        keys = [key] if slip else _leaves(key, error["input"])
        return "\n".join(_unknown(each, known) for each in keys)
    if error["type"] == "missing":
        return f"missing key {key!r}"
    message = str(error["msg"]).removeprefix("Value error, ")
    return f"{key or 'config'}: {message} (got {error['input']!r})" if key else message


def _unknown(key: str, known: Sequence[str]) -> str:
    if (now := renamed(key)) is not None:
        return f"unknown key {key!r}: {now}"
    near = nearest_key(key, known)
    hint = (
        f"; did you mean {near!r}?"
        if near
        else "; docs/reference/options.md and `vlrl config schema` list the keys"
    )
    return f"unknown key {key!r}{hint}"


def _leaves(key: str, value: Any) -> Iterator[str]:
    """The keys in an unknown section, which may be another project's: actor_rollout_ref.rollout.n."""
    if not isinstance(value, dict) or not value:
        yield key
        return
    for name, inner in value.items():
        yield from _leaves(f"{key}.{name}", inner)


def _as_written(loc: Sequence[int | str], tree: Any) -> Iterator[str]:
    """The parts of a key as the person's own tree has them: a mapping that is read as a list has no index."""
    for part in loc:
        if isinstance(part, int) and isinstance(tree, dict):
            continue
        yield str(part)
        inside = isinstance(part, int) if isinstance(tree, list) else isinstance(tree, dict) and part in tree
        tree = tree[part] if inside else None
