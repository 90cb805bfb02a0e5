"""SmolVLM, SmolVLM2, Idefics 3: turns named in words, images in tiles that are named by row and column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from vlrl.processors.family import FamilyProcessor
from vlrl.types import Media, MediaShape

TILE_TOKENS = tuple(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7))


class SmolVLMProcessor(FamilyProcessor):
    """Images come to a fixed longest side; max_pixels bounds their decoding, not their tokens."""

    end_of_turn = "<end_of_utterance>"
    end_tokens = ("<|im_end|>",)
    media_tokens = ("<image>", "<fake_token_around_image>", "<global-img>", *TILE_TOKENS)
    answer_prefix = " "

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Tiles, the whole image included."""
        rows, columns = self._rows_and_columns(shape)
        return rows * columns + 1, 1, 1

    def expand(self, shape: MediaShape) -> str:
        """Name and run of pads of each tile, row by row, then the whole image."""
        rows, columns = self._rows_and_columns(shape)
        return str(self._hf.replace_image_token({"rows": [[rows]], "cols": [[columns]]}, 0))

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """pixel_values [1, num_tiles, 3, side, side] float32, pixel_attention_mask without the 3, int64."""
        out = self._hf.image_processor(
            images=[[np.array(m.frames[0]) for m in media or [self._blank()]]],  # torch wants writable memory
            return_tensors="pt",
            input_data_format="channels_last",
        )
        return {name: out[name].numpy() for name in ("pixel_values", "pixel_attention_mask")}

    def _rows_and_columns(self, shape: MediaShape) -> tuple[int, int]:
        """Rows and columns of the tiling; (0, 0) for an image that is one tile."""
        _, rows, columns = self._hf.image_processor.get_number_of_image_patches(*shape.size, {})
        return int(rows), int(columns)


class Idefics3Processor(SmolVLMProcessor):
    """Idefics 3, of which SmolVLM is the small form: the same prompt, on a Llama."""

    end_tokens = ("<|end_of_text|>",)
