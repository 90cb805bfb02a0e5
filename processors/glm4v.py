"""GLM-4.1V, GLM-4.5V and GLM-4.6V: Qwen's patches and positions; a turn ends with the next one's header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vlrl.processors.qwen_vl import Qwen3VLProcessor

if TYPE_CHECKING:
    from vlrl.config import Config


class Glm4vProcessor(Qwen3VLProcessor):
    """Sides in whole merged patches; each pair of a video's frames is an image, its second behind it."""

    end_of_turn = "<|user|>"
    end_tokens = ("<|observation|>", "<|endoftext|>")
    media_tokens = (
        "<|begin_of_image|>", "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>", "<|image|>",
        "<|video|>",
    )  # fmt: skip
    text_tokens = ("<|begin_of_box|>", "<|end_of_box|>")

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        # GLM-4.6V's writes tenths of seconds, where vLLM 0.32 writes whole ones: other prompts.
        self.takes_video = type(self._hf).__name__ == "Glm4vProcessor"

    @property
    def engine_options(self) -> Mapping[str, Any]:
        """Media are resized and frames chosen already; the largest size is for the engine's buffers."""
        image, video = self.config, self.config.video
        longest = max(self.frame_multiple * image.max_pixels, video.total_pixels if self.takes_video else 0)
        return {
            "size": {"shortest_edge": self.frame_multiple * image.min_pixels, "longest_edge": longest},
            "images_kwargs": {"do_resize": False},
            "videos_kwargs": {"do_resize": False, "do_sample_frames": False},
        }

    def fit(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """GLM's smart_resize, which counts an image as a pair of frames."""
        from transformers.models.glm4v.image_processing_glm4v import smart_resize

        pair, factor = self.frame_multiple, self._patch_size * self._merge_size
        high, wide = smart_resize(pair, height, width, pair, factor, pair * min_pixels, pair * max_pixels)
        return int(high), int(wide)
