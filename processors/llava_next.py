"""LLaVA-NeXT (LLaVA 1.6): tiles as LLaVA-OneVision has them; each language model has its own template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vlrl.processors.llava_onevision import LlavaOnevisionProcessor

if TYPE_CHECKING:
    from vlrl.config import Config


class LlavaNextProcessor(LlavaOnevisionProcessor):
    """How a turn begins and ends follows from the template: Mistral's, Vicuna's, ChatML or Llama 3's."""

    end_of_turn = ""
    end_tokens = ()
    media_tokens = ("<image>",)
    takes_video = False

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.answer_prefix = self.template.answer_prefix()

    @property
    def tile(self) -> Mapping[str, int]:
        """Height and width of a tile in pixels: what CLIP's processor crops to."""
        size: Mapping[str, int] = self._hf.image_processor.crop_size
        return size
