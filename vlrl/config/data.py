"""The sections of the config tree that say what is read and how media become tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from vlrl.config.options import RewardList, Section
from vlrl.config.section import Name, named_list


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
    """Where media may come from, how much is believed of them, and where resolved ones are kept."""

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
    """Videos that claim to be longer are refused before they are decoded, in seconds."""
    timeout_s: float = Field(60.0, gt=0)
    """Longest download, and longest decoding of one video, in seconds."""


class DatasetConfig(Section):
    """One source of rows."""

    name: Name
    """A file or folder of rows, a dataset's name, a registered dataset, or ./file.py:attribute."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Passed to the reader by name: image_root, split, streaming, …; docs/data.md lists them by format."""
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


class DataConfig(Section):
    """Rows to train on and rows held out."""

    train: list[DatasetConfig] = Field(min_length=1)
    """One source, or a list of them mixed by weight; a name alone stands for {name: …}."""
    eval: list[DatasetConfig] = Field(default_factory=list)
    """Held-out rows, all sources one after the other."""
    max_prompt_tokens: int | None = Field(None, ge=16)
    """Longest prompt in tokens, media included; null: generator.max_model_len minus the completion."""
    overlong: Literal["drop", "trim", "keep", "error"] = "drop"
    """What happens to a longer prompt: the row is dropped (another is generated in its place), its oldest
    turns are dropped whole with their media until it fits, it is kept (where generator.max_model_len has
    room), or the run stops. All but the last are counted in the metrics."""
    on_broken: Literal["error", "drop"] = "error"
    """What happens to a row that cannot be read or has a broken or missing medium: the run stops and names
    it, or another takes its place; the metrics and the summary count them, and the first ones are named."""
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
