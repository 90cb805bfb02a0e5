"""The sections of the config tree that say what is read and how media become tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator, Field, model_validator

from vlrl.config.options import RewardList, Section
from vlrl.config.paths import FunctionName
from vlrl.config.section import Name, named_list
from vlrl.errors import ConfigError
from vlrl.registry.bound import Bound, bind


class VideoConfig(Section):
    """Which frames of a video the model sees, and how large."""

    fps: float | None = Field(2.0, gt=0)
    """Frames taken per second of video; null if num_frames is given."""
    num_frames: int | None = Field(None, ge=2)
    """Exactly this many frames, evenly spread; null if fps is given."""
    min_frames: int = Field(4, ge=2)
    """With fps: fewest frames, if the video has as many."""
    max_frames: int = Field(64, ge=2)
    """With fps: most frames of a video."""
    min_pixels: int = Field(56 * 56, ge=28 * 28)
    """Frames of fewer pixels are enlarged to this many."""
    max_pixels: int = Field(768 * 28 * 28, ge=28 * 28)
    """Frames of more pixels are shrunk to this many."""
    total_pixels: int = Field(8192 * 28 * 28, ge=28 * 28)
    """Most pixels of all frames of a video; frames are shrunk further to stay within it."""

    @model_validator(mode="after")
    def _one_rate(self) -> VideoConfig:
        if (self.fps is None) == (self.num_frames is None):
            raise ValueError(
                f"give either fps or num_frames, not fps={self.fps}, num_frames={self.num_frames}"
            )
        if self.min_frames > self.max_frames:
            raise ValueError(f"min_frames={self.min_frames} is above max_frames={self.max_frames}")
        if self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels={self.min_pixels} is above max_pixels={self.max_pixels}")
        return self


class ProcessorConfig(Section):
    """How media become tokens."""

    name: str = "auto"
    """A registered processor, or "auto": chosen by the model's type."""
    min_pixels: int = Field(56 * 56, ge=28 * 28)
    """Images of fewer pixels are enlarged to this many."""
    max_pixels: int = Field(1280 * 28 * 28, ge=28 * 28)
    """Images of more pixels are shrunk to this many; Qwen2.5-VL spends one token on 28×28 of them."""
    max_sample_pixels: int | None = Field(None, ge=28 * 28)
    """Most pixels of all images of a sample; more are shrunk by one common factor. Null: no limit."""
    video: VideoConfig = VideoConfig()
    trust_remote_code: bool = False
    """Run Python that comes with the model. Never needed for the built-in families."""

    @model_validator(mode="after")
    def _ordered(self) -> ProcessorConfig:
        if self.min_pixels > self.max_pixels:
            raise ValueError(f"min_pixels={self.min_pixels} is above max_pixels={self.max_pixels}")
        return self


class MediaConfig(Section):
    """Where media may come from, how large they may be, and where decoded ones are kept."""

    cache_dir: Path | None = None
    """Folder of resolved media; null is vlrl/media in the user's cache folder."""
    cache_gib: float = Field(20.0, ge=0)
    """Most disk space for resolved media, in GiB; the least recently used are removed first. 0 keeps none."""
    allowed_hosts: list[str] = Field(default_factory=list)
    """Hosts that media URLs may name; empty refuses every URL. Private addresses are always refused."""
    max_file_mib: float = Field(512.0, gt=0)
    """Files and downloads beyond this are refused before they are read, in MiB."""
    max_source_pixels: int = Field(100_000_000, ge=28 * 28)
    """Images and video frames that claim more pixels than this are refused before they are decoded."""
    max_video_s: float = Field(3600.0, gt=0)
    """Videos and audios that claim to be longer are refused before they are decoded, in seconds."""
    timeout_s: float = Field(60.0, gt=0)
    """Longest download, and longest decoding of one video or audio, in seconds."""


class SamplerConfig(Section):
    """Which row of a source comes next (docs/curricula.md); a name alone stands for {name: …}."""

    name: FunctionName = "uniform"
    """Weight of each row: uniform (every row once an epoch), or a function of the rows' pass rates:
    learnability (explore), hardness (explore), band (low, high), easy_to_hard (first, epochs_to_all), or
    ./file.py:function that returns a weight for each."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the function by name."""
    start_rates: Path | None = None
    """A file that `vlrl data rate` wrote: the rows' pass rates under model.path. Null: nothing is known."""
    adaptive: bool = True
    """Rates follow the completions that training generates; false: they stay those of start_rates."""
    half_life: float = Field(1.0, gt=0)
    """Epochs of this source after which a completion counts half in its row's rate, as the policy has
    changed; .inf: it always counts whole."""
    prior_strength: float = Field(1.0, gt=0)
    """Completions that the prior rate counts as; 1 is Jeffreys' prior."""
    pool_by: str | None = None
    """A key of the rows' metadata, such as level: the prior rate of a row is then that of all rows with the
    same value. Null: 0.5 for every row."""

    @property
    def is_adaptive(self) -> bool:
        """Whether the next row follows from what training has observed."""
        return self.name != "uniform" and self.adaptive

    @property
    def is_static(self) -> bool:
        """Whether rows have weights that stay those of the start model."""
        return self.name != "uniform" and not self.adaptive

    @model_validator(mode="after")
    def _read(self) -> SamplerConfig:
        self._require_rates()
        if self.name != "uniform":
            try:
                bound_weights(self)
            except ConfigError as error:
                raise ValueError(str(error)) from error
        return self

    def _require_rates(self) -> None:
        """Refuse what nothing would read."""
        fields = type(self).model_fields
        defaults = {key: fields[key].get_default(call_default_factory=True) for key in fields}
        changed = [key for key, default in defaults.items() if getattr(self, key) != default]
        if self.name == "uniform" and changed:
            raise ValueError(
                f"{changed[0]}={getattr(self, changed[0])} has no effect with name=uniform, which weighs all "
                "rows alike; leave it out, or set name=learnability"
            )
        if not self.adaptive and self.start_rates is None:
            raise ValueError(
                "adaptive=false keeps the pass rates of start_rates, and start_rates is null; set "
                "start_rates to a file of `vlrl data rate`, or adaptive=true"
            )
        if not self.adaptive and (unread := [key for key in changed if key in ESTIMATED]):
            raise ValueError(
                f"{unread[0]}={getattr(self, unread[0])} has no effect with adaptive=false, which keeps "
                "the pass rates of start_rates as they are; leave it out, or set adaptive=true"
            )


ESTIMATED = ("half_life", "prior_strength", "pool_by")
"""Keys of the estimate that an adaptive sampler makes."""

Sampler: TypeAlias = Annotated[
    SamplerConfig, BeforeValidator(lambda value: {"name": value} if isinstance(value, str) else value)
]


def bound_weights(options: SamplerConfig) -> Bound:
    """The weights with their options: a function of [N] float64 pass rates that returns [N] weights.

    Raises:
        ConfigError: as `vlrl.registry.bound.bind` does.
    """
    return bind("samplers", options.name, options.options, given=("rates",), shared={}, context=("epochs",))


class DatasetConfig(Section):
    """One source of rows."""

    name: Name
    """A file or folder of rows, a dataset's name, a registered dataset, or ./file.py:attribute."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the reader by name: image_root, split, streaming, …; docs/data.md lists them by format."""
    alias: str | None = Field(None, min_length=1)
    """Name of this source in metrics and tables; null: the last part of its name."""
    limit: int | None = Field(None, ge=1)
    """Use only the first this many rows."""
    shape: str = "auto"
    """Layout of the rows: vlrl, trl, vlm_r1, easy_r1, llava, openai, ./file.py:function, or auto, which
    detects it from the first row."""
    columns: dict[str, str] = Field(default_factory=dict)
    """vlrl's field → the source's column, for instance {answer: solution, images: image_path}."""
    template: str | None = None
    """Jinja template of the user's text (its variables are the row's columns), or a path to one."""
    system: str | None = None
    """System message put before every conversation that has none."""
    rewards: RewardList = Field(default_factory=list)
    """Rewards of this source's rows; empty means the run's."""
    weight: float = Field(1.0, gt=0)
    """Share of this source in a mixture: rows are sampled in proportion to the weights."""
    sampler: Sampler = SamplerConfig()
    """The order of this source's rows."""


class DataConfig(Section):
    """Rows to train on and rows held out."""

    train: list[DatasetConfig] = Field(min_length=1)
    """One source, or a list of them mixed by weight; a name alone stands for {name: …}."""
    eval: list[DatasetConfig] = Field(default_factory=list)
    """Held-out rows: one set or several, each with its own rewards and limit (docs/evaluation.md)."""
    max_prompt_tokens: int | None = Field(None, ge=16)
    """Longest prompt in tokens, media included; null: generator.max_model_len minus the completion."""
    overlong: Literal["drop", "trim", "keep", "error"] = "drop"
    """What happens to a longer prompt: the row is dropped (another is generated in its place), its oldest
    turns are dropped whole with their media until it fits, it is kept (where generator.max_model_len has
    room), or the run stops. All but the last are counted in the metrics."""
    on_broken: Literal["error", "drop"] = "error"
    """What happens to a row that cannot be read or has a broken or missing medium: the run stops and names
    it, or another takes its place; the metrics and the summary count them, and the first ones are named."""
    pass_threshold: float = 1.0
    """A completion passes if the first reward of its source is at least that: for pass rates of rows."""
    num_workers: int = Field(2, ge=1)
    """Threads that resolve media ahead of training."""
    prefetch_steps: int = Field(1, ge=0)
    """Steps that are prepared ahead."""

    @model_validator(mode="before")
    @classmethod
    def _one_or_many(cls, tree: Any) -> Any:
        if not isinstance(tree, dict):
            return tree
        return {**tree, **{k: named_list(v) for k, v in tree.items() if k in ("train", "eval")}}

    @model_validator(mode="after")
    def _samplers_are_for_training(self) -> DataConfig:
        for number, source in enumerate(self.eval):
            if source.sampler.name != "uniform":
                raise ValueError(
                    f"eval.{number}.sampler.name={source.sampler.name} has no effect: held-out rows are "
                    "read in their order; leave it out, or move it to train"
                )
        return self
