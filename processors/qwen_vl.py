"""Qwen2-VL, Qwen2.5-VL, Qwen3-VL: ChatML, one pad per medium, merged patches, multimodal rotary positions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from qwen_vl_utils.vision_process import smart_resize

from vlrl.processors.family import FamilyProcessor
from vlrl.processors.media.video_metadata import metadata_of, video_arrays
from vlrl.processors.prompts.mrope import mrope_positions
from vlrl.types import IntArray, Media, MediaShape

if TYPE_CHECKING:
    from vlrl.config import Config

Patches = tuple[npt.NDArray[Any], npt.NDArray[Any]]
"""[num_patches, 3·2·patch²] float32 and [3] int64, the grid they lie on."""

MEDIA_TOKENS = ("<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
GROUNDING_TOKENS = (
    "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
    "<|quad_start|>", "<|quad_end|>",
)  # fmt: skip


class QwenVLProcessor(FamilyProcessor):
    """Qwen2-VL: sides in whole merged patches, frames in pairs, a video's time counted in steps of one."""

    end_of_turn = "<|im_end|>"
    end_tokens: tuple[str, ...] = ("<|endoftext|>",)
    media_tokens: tuple[str, ...] = MEDIA_TOKENS
    text_tokens: tuple[str, ...] = GROUNDING_TOKENS
    takes_video = True

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        image = self._hf.image_processor
        self._patch_size, self._merge_size = int(image.patch_size), int(image.merge_size)
        self.frame_multiple = int(image.temporal_patch_size)

    @property
    def engine_options(self) -> Mapping[str, Any]:
        """Media are resized and frames chosen already; the limits size the engine's buffers."""
        limits, video = self.config, self.config.video
        images = {"min_pixels": limits.min_pixels, "max_pixels": limits.max_pixels}
        videos = {"min_pixels": video.min_pixels, "max_pixels": video.total_pixels}
        return {
            "images_kwargs": {"do_resize": False, **images},
            "videos_kwargs": {"do_resize": False, "do_sample_frames": False, **videos},
        }

    def fit(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """Qwen's smart_resize."""
        factor = self._patch_size * self._merge_size
        new_height, new_width = smart_resize(height, width, factor, min_pixels, max_pixels)
        return int(new_height), int(new_width)

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Patches; frames go in pairs."""
        height, width = shape.size
        time = -(-shape.num_frames // self.frame_multiple)
        return time, height // self._patch_size, width // self._patch_size

    def expand(self, shape: MediaShape) -> str:
        """A pad for every merged patch."""
        pad = self._hf.image_token if shape.kind == "image" else self._hf.video_token
        return str(pad) * (int(np.prod(self.grid(shape))) // self._merge_size**2)

    def positions(
        self, token_ids: IntArray, shapes: Sequence[MediaShape], start: int
    ) -> tuple[IntArray, int]:
        """Multimodal rotary positions."""
        runs = [run for shape in shapes for run in self._runs(shape)]
        merge = self._merge_size
        grids = [(time, height // merge, width // merge) for (time, height, width), _ in runs]
        # A sound's positions are those of text.
        is_pad = self.is_placeholder(token_ids) & (token_ids != self._placeholders.get("audio", -1))
        return mrope_positions(is_pad, grids, [step for _, step in runs], start)

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """Patches of all media in order: pixel_values [num_patches, 3·2·patch²] float32, image_grid_thw.

        A video's patches look like an image's with more time, so that one call of the tower takes both.
        """
        media = media or [self._blank()]
        images = iter(self._image_patches([m for m in media if m.kind == "image"]))
        done = [next(images) if m.kind == "image" else self._video_patches(m) for m in media]
        return {
            "pixel_values": np.concatenate([patches for patches, _ in done]),
            "image_grid_thw": np.stack([grid for _, grid in done]),
        }

    def _runs(self, shape: MediaShape) -> list[tuple[tuple[int, int, int], float]]:
        """The runs of pads that a medium expands to: (patch grid, positions per step in time)."""
        return [(self.grid(shape), 1.0)]

    def _image_patches(self, images: Sequence[Media]) -> list[Patches]:
        if not images:
            return []
        out = self._hf.image_processor(
            images=[np.array(m.frames[0]) for m in images],  # torch wants writable memory
            do_resize=False,
            return_tensors="pt",
            input_data_format="channels_last",
        )
        grids = out["image_grid_thw"].numpy()
        ends = np.cumsum(grids.prod(axis=1))[:-1]
        return list(zip(np.split(out["pixel_values"].numpy(), ends), grids, strict=True))

    def _video_patches(self, video: Media) -> Patches:
        out = video_arrays(self._hf.video_processor, video)
        return out["pixel_values_videos"].numpy(), out["video_grid_thw"].numpy()[0]


class Qwen25VLProcessor(QwenVLProcessor):
    """Qwen2.5-VL: a video's time is counted in seconds times tokens_per_second (arXiv 2502.13923 §2.1.2)."""

    def _runs(self, shape: MediaShape) -> list[tuple[tuple[int, int, int], float]]:
        if shape.fps is None:
            return super()._runs(shape)
        # Single precision, like the second_per_grid_ts that the engine is handed by transformers.
        second_per_grid = float(np.float32(self.frame_multiple / shape.fps))
        return [(self.grid(shape), second_per_grid * self._model_config.vision_config.tokens_per_second)]


class Qwen3VLProcessor(QwenVLProcessor):
    """Qwen3-VL: every pair of frames is written out with its time, and is an image of its own."""

    def expand(self, shape: MediaShape) -> str:
        """Text of each pair of frames: its time in seconds, then a bracketed run of pads."""
        if shape.kind == "image":
            return super().expand(shape)
        import torch

        inputs = {
            "video_grid_thw": torch.tensor([self.grid(shape)]),
            "video_metadata": [metadata_of(shape)],
        }
        return str(self._hf.replace_video_token(inputs, 0))

    def _runs(self, shape: MediaShape) -> list[tuple[tuple[int, int, int], float]]:
        time, height, width = self.grid(shape)
        return [((1, height, width), 1.0)] * time
