"""MiniCPM-V 4.6: ChatML; an image is numbered, then shown whole and in slices of about its own shape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.processors.family import FamilyProcessor
from vlrl.types import Media, MediaShape


class MiniCPMVProcessor(FamilyProcessor):
    """Slices follow from an image's shape; max_pixels bounds its decoding, and so the slices."""

    end_of_turn = "<|im_end|>"
    end_tokens = ("<|endoftext|>",)
    media_tokens = (
        "<|image_pad|>", "<|video_pad|>", "<image>", "</image>", "<slice>", "</slice>", "<image_id>",
        "</image_id>",
    )  # fmt: skip
    text_tokens = ("<ref>", "</ref>", "<box>", "</box>", "<quad>", "</quad>", "<point>", "</point>")

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Slices, the whole image included."""
        rows, columns = self._rows_and_columns(shape)
        return rows * columns + 1, 1, 1

    def number(self, index: int) -> str:
        """Images count from 0 in every prompt."""
        return f"{self._hf.image_id_start_token}{index}{self._hf.image_id_end_token}"

    def expand(self, shape: MediaShape) -> str:
        """A bracketed run of pads for the whole image, and one for each slice, a line a row."""
        images, (rows, columns) = self._hf.image_processor, self._rows_and_columns(shape)
        sides = images.scale_resolution, images.patch_size
        sizes = [images.find_best_resize(shape.size, *sides, allow_upscale=not rows)]
        if rows:
            height, width = images.get_refine_size(shape.size, (rows, columns), *sides, allow_upscale=True)
            sizes += [(height // rows, width // columns)] * rows * columns
        inputs = {
            "grids": [(rows, columns)],
            "num_patches_per_image": [len(sizes)],
            "target_sizes": np.array(sizes) // images.patch_size,
        }
        divisor = self._hf.image_token_divisor
        return str(self._hf.replace_image_token(inputs, 0, image_token_divisor=divisor))

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """pixel_values [1, 3, side, patches · side] float32; target_sizes [slices, 2] int32, in patches."""
        out = self._hf.image_processor(
            images=[np.array(m.frames[0]) for m in media or [self._blank()]],  # torch wants writable memory
            return_tensors="pt",
            input_data_format="channels_last",
        )
        return {name: out[name].numpy() for name in ("pixel_values", "target_sizes")}

    def _rows_and_columns(self, shape: MediaShape) -> tuple[int, int]:
        """Rows and columns of the slices; (0, 0) for an image that has none."""
        images = self._hf.image_processor
        grid = images.get_sliced_grid(shape.size, images.max_slice_nums, images.scale_resolution)
        rows, columns = grid if grid and images.slice_mode else (0, 0)
        return int(rows), int(columns)
