"""Qwen2.5-Omni's thinker: Qwen2.5-VL's images and videos, and audio at 25 tokens a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vlrl.errors import DataError
from vlrl.processors.media.plan import MediaPlan
from vlrl.processors.qwen_vl import Qwen25VLProcessor
from vlrl.types import Media, MediaShape, Row

if TYPE_CHECKING:
    from vlrl.config import Config

MIN_FRAMES = 3
"""Of the spectrogram: the tower halves it twice."""
VIDEO_FPS = 2.0
"""At which every video is taken to have been sampled, as by processor.video.fps unless it is set."""


class QwenOmniProcessor(Qwen25VLProcessor):
    """A token for every 40 ms of sound; the spectrogram is Whisper's (arXiv 2212.04356 §2.2)."""

    media_tokens = (
        "<|vision_bos|>", "<|vision_eos|>", "<|vision_pad|>", "<|IMAGE|>", "<|VIDEO|>",
        "<|audio_bos|>", "<|audio_eos|>", "<|AUDIO|>",
    )  # fmt: skip
    text_tokens = ("<|box_end|>", "<|quad_start|>", "<|quad_end|>")

    def __init__(self, config: Config) -> None:
        from transformers import AutoFeatureExtractor

        sounds = AutoFeatureExtractor.from_pretrained(config.model.path)
        self.sample_rate = int(sounds.sampling_rate)
        super().__init__(config)
        self._model_config = self._model_config.thinker_config
        self._hop, self._window = int(sounds.hop_length), int(sounds.n_fft)
        self._most_samples = int(sounds.n_samples)

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Patches, or tokens of an audio in a row."""
        return (1, 1, self._num_sounds(shape)) if shape.kind == "audio" else super().grid(shape)

    def expand(self, shape: MediaShape) -> str:
        """A pad for every merged patch, or every four frames of the spectrogram."""
        return (
            str(self._hf.audio_token) * self._num_sounds(shape)
            if shape.kind == "audio"
            else super().expand(shape)
        )

    def _num_sounds(self, shape: MediaShape) -> int:
        """Tokens of an audio."""
        return _num_tokens(self._num_frames(shape.num_frames))

    def _planned(self, row: Row) -> tuple[tuple[Mapping[str, Any], ...], list[MediaPlan], str]:
        messages, plans, where = super()._planned(row)
        for shape in (plan.shape for plan in plans if plan.shape.kind == "audio"):
            least, most = MIN_FRAMES * self._hop / self.sample_rate, self._most_samples / self.sample_rate
            if not least <= (lasts := shape.num_frames / self.sample_rate) <= most:
                raise DataError(
                    f"{where}: an audio lasts {lasts:.2f} s, and the model takes {least:g} to {most:g} s; "
                    "cut it by start_s and end_s, or drop the row"
                )
        return messages, plans, where

    def _num_frames(self, num_samples: int) -> int:
        """Of the spectrogram."""
        return -(-num_samples // self._hop)

    def _runs(self, shape: MediaShape) -> list[tuple[tuple[int, int, int], float]]:
        """A video's time as transformers and vLLM count it, who are not told its rate."""
        if shape.kind == "audio":
            return []
        return [
            (self.grid(shape), self.frame_multiple / VIDEO_FPS * self._model_config.position_id_per_seconds)
        ]

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """Patches as Qwen2.5-VL has them; with audios, what `vlrl.model.omni.towers.AUDIO` says."""
        heard = {place: medium for place, medium in enumerate(media) if medium.kind == "audio"}
        inputs = super().pixels([medium for medium in media if medium.kind != "audio"])
        return {**inputs, **self._spectrograms(heard)} if heard else inputs

    def _spectrograms(self, heard: Mapping[int, Media]) -> dict[str, npt.NDArray[Any]]:
        """Of each audio followed by silence: transformers pads all to 300 s, which only takes time."""
        lengths = [len(medium.frames) for medium in heard.values()]
        padded = np.zeros((len(lengths), max(lengths) + self._window), np.float32)
        for row, medium in zip(padded, heard.values(), strict=True):
            row[: len(medium.frames)] = medium.samples
        out = self._hf.feature_extractor(
            list(padded), sampling_rate=self.sample_rate, padding=False, return_tensors="np"
        )
        frames = np.array([self._num_frames(length) for length in lengths])
        most = frames.max()
        return {
            "audio_places": np.array([n if m.num_tokens else -1 for n, m in heard.items()], np.int64),
            "audio_num_tokens": np.array([_num_tokens(n) for n in frames], np.int64),
            "input_features": np.asarray(out["input_features"], np.float32)[:, :, :most],
            "feature_attention_mask": (np.arange(most) < frames[:, None]).astype(np.int64),
        }


def _num_tokens(num_frames: int) -> int:
    """Of a spectrogram: halved by a convolution, and again by a mean of pairs."""
    return ((num_frames - 1) // 2 - 1) // 2 + 1
