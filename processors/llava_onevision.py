"""LLaVA-OneVision: ChatML, images cut into tiles on the best of some grids, a newline token a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.processors.family import FamilyProcessor
from vlrl.processors.media.video_metadata import frame_counts, video_arrays
from vlrl.types import Media, MediaShape


class LlavaOnevisionProcessor(FamilyProcessor):
    """Every image is cut into tiles, also where a conversation has several. A video's frame is one tile.

    vLLM does so too. transformers' own processor gives each of several images one tile alone, so an image
    that comes later would change the tokens of an earlier one.
    """

    end_of_turn = "<|im_end|>"
    end_tokens: tuple[str, ...] = ("<|endoftext|>",)
    media_tokens: tuple[str, ...] = ("<image>", "<video>")
    takes_video = True

    @property
    def tile(self) -> Mapping[str, int]:
        """Height and width of a tile in pixels."""
        size: Mapping[str, int] = self._hf.image_processor.size
        return size

    @property
    def engine_options(self) -> Mapping[str, Any]:
        """Frames are chosen already. They are resized to the size that they have, which changes nothing."""
        return {"videos_kwargs": {"do_sample_frames": False}} if self.takes_video else {}

    def fit_video(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """One size for all frames, whatever their shape: the video processor's."""
        size = self._hf.video_processor.size
        return int(size["height"]), int(size["width"])

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Tiles, the whole image included; or frames."""
        if shape.kind == "video":
            return shape.num_frames, 1, 1
        from transformers.image_processing_utils import select_best_resolution

        tile = self.tile
        height, width = select_best_resolution(shape.size, self._hf.image_processor.image_grid_pinpoints)
        return height // tile["height"] * (width // tile["width"]) + 1, 1, 1

    def expand(self, shape: MediaShape) -> str:
        """Pads for the whole image, for the tiles without their margins, and for each row's end.

        Of a video: pads for each frame, fewer than for a tile, and one behind the last.
        """
        if shape.kind == "video":
            return str(self._hf.replace_video_token({"pixel_values_videos": [np.zeros(shape.num_frames)]}, 0))
        tile = self.tile
        inputs = {
            "batch_num_images": [1],
            "image_sizes": [shape.size],
            "pixel_values": np.zeros((1, 1, tile["height"], tile["width"]), np.float32),
        }
        return str(self._hf.replace_image_token(inputs, 0))

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """pixel_values [num_tiles, 3, side, side] float32; image_sizes [num_media, 2] int64.

        With videos also num_frames [num_media] int64, 0 for an image: see `vlrl.model.kernels.videos`.
        """
        media = media or [self._blank()]
        arrays = {
            "pixel_values": np.concatenate([self._tiles(medium) for medium in media]),
            "image_sizes": np.array([medium.size for medium in media], np.int64),
        }
        return arrays | frame_counts(media)

    def _tiles(self, medium: Media) -> npt.NDArray[Any]:
        """[num_tiles, 3, side, side] float32."""
        if medium.kind == "video":
            tiles = video_arrays(self._hf.video_processor, medium)["pixel_values_videos"][0]
        else:
            image = np.array(medium.frames[0])  # torch wants writable memory
            options = {"return_tensors": "pt", "input_data_format": "channels_last"}
            tiles = self._hf.image_processor(images=[[image]], **options)["pixel_values"][0]
        found: npt.NDArray[Any] = tiles.numpy()
        return found
