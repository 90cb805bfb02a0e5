"""MiniCPM-V 4.6: ChatML; an image is numbered, then shown whole and in slices of about its own shape."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.processors.family import FamilyProcessor
from vlrl.types import Media, MediaShape


class MiniCPMVProcessor(FamilyProcessor):
    """Slices follow from an image's shape; max_pixels bounds its decoding, and so the slices.

    A video has one number, and its frames are shown as images are, with pads of its own.
    """

    end_of_turn = "<|im_end|>"
    end_tokens = ("<|endoftext|>",)
    media_tokens = (
        "<|image_pad|>", "<|video_pad|>", "<image>", "</image>", "<slice>", "</slice>", "<image_id>",
        "</image_id>",
    )  # fmt: skip
    text_tokens = ("<ref>", "</ref>", "<box>", "</box>", "<quad>", "</quad>", "<point>", "</point>")

    takes_video = True

    @property
    def engine_options(self) -> Mapping[str, Any]:
        """Frames are chosen already."""
        return {"videos_kwargs": {"do_sample_frames": False}}

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Slices, the whole image or frame included."""
        rows, columns = self._rows_and_columns(shape)
        return shape.num_frames * (rows * columns + 1), 1, 1

    def number(self, index: int) -> str:
        """Images count from 0 in every prompt, and so do videos."""
        return f"{self._hf.image_id_start_token}{index}{self._hf.image_id_end_token}"

    def expand(self, shape: MediaShape) -> str:
        """A bracketed run of pads for the whole image or frame, and one for each slice, a line a row."""
        images, (rows, columns) = self._hf.image_processor, self._rows_and_columns(shape)
        sides = images.scale_resolution, images.patch_size
        sizes = [images.find_best_resize(shape.size, *sides, allow_upscale=not rows)]
        if rows:
            height, width = images.get_refine_size(shape.size, (rows, columns), *sides, allow_upscale=True)
            sizes += [(height // rows, width // columns)] * rows * columns
        patches, divisor = np.array(sizes) // images.patch_size, self._hf.image_token_divisor
        if shape.kind == "video":
            frames = {
                "grids_videos": np.array([(rows, columns)] * shape.num_frames),
                "num_frames_per_video": [shape.num_frames],
                "target_sizes_videos": np.tile(patches, (shape.num_frames, 1)),
            }
            return str(self._hf.replace_video_token(frames, 0, video_token_divisor=divisor))
        inputs = {
            "grids": [(rows, columns)],
            "num_patches_per_image": [len(sizes)],
            "target_sizes": patches,
        }
        return str(self._hf.replace_image_token(inputs, 0, image_token_divisor=divisor))

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """pixel_values [1, 3, side, patches · side] float32; target_sizes [slices, 2] int32, in patches."""
        made = [
            self._hf.image_processor(
                images=[*np.array(m.frames)],  # torch wants writable memory
                max_slice_nums=self._most_slices(m.kind),
                return_tensors="pt",
                input_data_format="channels_last",
            )
            for m in media or [self._blank()]
        ]
        return {
            "pixel_values": np.concatenate([out["pixel_values"].numpy() for out in made], axis=-1),
            "target_sizes": np.concatenate([out["target_sizes"].numpy() for out in made]),
        }

    def _rows_and_columns(self, shape: MediaShape) -> tuple[int, int]:
        """Rows and columns of the slices; (0, 0) for an image or a frame that has none."""
        images = self._hf.image_processor
        grid = images.get_sliced_grid(shape.size, self._most_slices(shape.kind), images.scale_resolution)
        rows, columns = grid if grid and images.slice_mode else (0, 0)
        return int(rows), int(columns)

    def _most_slices(self, kind: str) -> int:
        """Most slices of an image, or of a frame: vLLM gives frames to the processor of images with these."""
        own = self._hf.video_processor if kind == "video" else self._hf.image_processor
        return int(own.max_slice_nums)
