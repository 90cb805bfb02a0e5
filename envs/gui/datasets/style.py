"""How rows of GUI agents are written: by which codec, and for which size of the image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vlrl.config.data import ProcessorConfig
from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import Action
from vlrl.envs.gui.codecs.codec import View
from vlrl.envs.gui.codecs.grammar.next_words import next_words
from vlrl.envs.gui.codecs.grammar.tolerance import TolerantCodec
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.envs.gui.screen import Form
from vlrl.errors import ConfigError
from vlrl.processors.messages import message_of

_LIMITS = ProcessorConfig()


@dataclass(frozen=True, slots=True)
class Style:
    """A codec, and the sizes at which its model is given images.

    Attributes:
        codec: opened.
        factor: of the sides of an image as the model is given it, 28 for Qwen2.5-VL and 32 for Qwen3-VL: for
            codecs that name its size or write its pixels. None is the image as it is.
        min_pixels: fewer are enlarged, where there is a factor; the processor's.
        max_pixels: more are shrunk.
    """

    codec: TolerantCodec
    factor: int | None = None
    min_pixels: int = _LIMITS.min_pixels
    max_pixels: int = _LIMITS.max_pixels

    @classmethod
    def of(cls, dataset: str, codec: str, factor: int | None, **limits: int) -> Style:
        """The style of a source's options.

        Raises:
            ConfigError: for an unknown codec or a factor below 1.
        """
        if factor is not None and factor < 1:
            raise ConfigError(f"dataset {dataset}: factor={factor}; give a whole number from 1, or null")
        return cls(open_codec(codec), factor, **limits)

    def canvas(self, size: tuple[int, int]) -> Canvas:
        """An image of (height, width), and as the model is given it."""
        if self.factor is None:
            return Canvas(size, size)
        from qwen_vl_utils.vision_process import smart_resize

        height, width = smart_resize(*size, self.factor, self.min_pixels, self.max_pixels)
        return Canvas(size, (int(height), int(width)))

    def instructions(self, size: tuple[int, int], form: Form) -> dict[str, Any]:
        """The system message for an image of (height, width)."""
        height, width = self.canvas(size).size
        return message_of("system", self.codec.instructions((width, height), form))

    def words(self, action: Action, size: tuple[int, int]) -> str:
        """An action on an image of (height, width) in the codec's words, or what comes to the same.

        Raises:
            ActionError: for one that the codec cannot say.
        """
        return next_words(self.codec, action, View(self.canvas(size), (0, 0)))
