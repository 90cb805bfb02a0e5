"""InternVL3 and 3.5 in Hugging Face format: ChatML, images cut into square tiles of as many tokens each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.processors.family import FamilyProcessor
from vlrl.processors.media.video_metadata import video_arrays
from vlrl.types import Media, MediaShape


class InternVLProcessor(FamilyProcessor):
    """The number of tiles follows from an image's shape; max_pixels bounds its decoding, not its tokens.

    A frame of a video is one tile with its number before it.
    """

    end_of_turn = "<|im_end|>"
    end_tokens = ("<|endoftext|>",)
    media_tokens = ("<img>", "</img>", "<IMG_CONTEXT>", "<video>")
    text_tokens = (
        "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
        "<|quad_start|>", "<|quad_end|>", "<ref>", "</ref>", "<box>", "</box>", "<quad>", "</quad>",
    )  # fmt: skip

    takes_video = True

    @property
    def engine_options(self) -> Mapping[str, Any]:
        """Frames are chosen already. They are resized to the size that they have, which changes nothing."""
        return {"videos_kwargs": {"do_sample_frames": False}}

    def fit_video(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """A tile, whatever a frame's shape."""
        tile = self._hf.image_processor.size
        return int(tile["height"]), int(tile["width"])

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Tiles, the thumbnail included; or frames."""
        if shape.kind == "video":
            return shape.num_frames, 1, 1
        options = {"crop_to_patches": True}  # as transformers' whole processor asks of the image processor
        return int(self._hf.image_processor.get_number_of_image_patches(*shape.size, options)), 1, 1

    def expand(self, shape: MediaShape) -> str:
        """A bracketed run of pads, the same number for each tile; of a video, one for each frame."""
        if shape.kind == "video":
            return str(self._hf.replace_video_token({"pixel_values_videos": [np.zeros(shape.num_frames)]}, 0))
        return str(self._hf.replace_image_token({"num_patches": [self.grid(shape)[0]]}, 0))

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """pixel_values [num_tiles, 3, side, side] float32."""
        return {"pixel_values": np.concatenate([self._tiles(m) for m in media or [self._blank()]])}

    def _tiles(self, medium: Media) -> npt.NDArray[Any]:
        """[num_tiles, 3, side, side] float32."""
        if medium.kind == "video":
            tiles = video_arrays(self._hf.video_processor, medium)["pixel_values_videos"][0]
        else:
            tiles = self._hf.image_processor(
                images=[np.array(medium.frames[0])],  # torch wants writable memory
                crop_to_patches=True,
                return_tensors="pt",
                input_data_format="channels_last",
            )["pixel_values"]
        found: npt.NDArray[Any] = tiles.numpy()
        return found
