"""InternVL3 and 3.5 in Hugging Face format: ChatML, images cut into square tiles of as many tokens each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.processors.family import FamilyProcessor
from vlrl.types import Media, MediaShape


class InternVLProcessor(FamilyProcessor):
    """The number of tiles follows from an image's shape; max_pixels bounds its decoding, not its tokens."""

    end_of_turn = "<|im_end|>"
    end_tokens = ("<|endoftext|>",)
    media_tokens = ("<img>", "</img>", "<IMG_CONTEXT>", "<video>")
    text_tokens = (
        "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>", "<|box_end|>",
        "<|quad_start|>", "<|quad_end|>", "<ref>", "</ref>", "<box>", "</box>", "<quad>", "</quad>",
    )  # fmt: skip

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Tiles, the thumbnail included."""
        options = {"crop_to_patches": True}  # as transformers' whole processor asks of the image processor
        return int(self._hf.image_processor.get_number_of_image_patches(*shape.size, options)), 1, 1

    def expand(self, shape: MediaShape) -> str:
        """A bracketed run of pads, the same number for each tile."""
        return str(self._hf.replace_image_token({"num_patches": [self.grid(shape)[0]]}, 0))

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """pixel_values [num_tiles, 3, side, side] float32."""
        out = self._hf.image_processor(
            images=[np.array(m.frames[0]) for m in media or [self._blank()]],  # torch wants writable memory
            crop_to_patches=True,
            return_tensors="pt",
            input_data_format="channels_last",
        )
        return {"pixel_values": out["pixel_values"].numpy()}
