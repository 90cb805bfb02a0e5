"""Qwen2.5-Omni's thinker: Qwen2.5-VL's images and videos, and audio at 25 tokens a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vlrl.processors.media.audio import Hearing, audio_places
from vlrl.processors.qwen_vl import Qwen25VLProcessor
from vlrl.types import FloatArray, Media, MediaShape

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
        super().__init__(config)
        self._model_config = self._model_config.thinker_config

    def hearing(self) -> Hearing | None:
        """An audio lasts 300 s at most as published: transformers would cut off the rest."""
        sounds = self._hf.feature_extractor
        rate, hop = int(sounds.sampling_rate), int(sounds.hop_length)
        return Hearing(rate, MIN_FRAMES * hop / rate, sounds.n_samples / rate)

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Patches, or tokens of an audio in a row."""
        return (1, 1, self._num_sounds(shape.num_frames)) if shape.kind == "audio" else super().grid(shape)

    def expand(self, shape: MediaShape) -> str:
        """A pad for every merged patch, or every four frames of the spectrogram."""
        return (
            str(self._hf.audio_token) * self._num_sounds(shape.num_frames)
            if shape.kind == "audio"
            else super().expand(shape)
        )

    def _num_frames(self, num_samples: int) -> int:
        """Frames of the spectrogram."""
        return -(-num_samples // int(self._hf.feature_extractor.hop_length))

    def _num_sounds(self, num_samples: int) -> int:
        """Tokens of an audio: frames halved by a convolution, and again by a mean of pairs."""
        return ((self._num_frames(num_samples) - 1) // 2 - 1) // 2 + 1

    def _runs(self, shape: MediaShape) -> list[tuple[tuple[int, int, int], float]]:
        """A video's time as transformers and vLLM count it, who are not told its rate."""
        if shape.kind == "audio":
            return []
        return [
            (self.grid(shape), self.frame_multiple / VIDEO_FPS * self._model_config.position_id_per_seconds)
        ]

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """Patches as Qwen2.5-VL has them; with audios, what `vlrl.model.omni.towers.AUDIO` says."""
        inputs = super().pixels([medium for medium in media if medium.kind != "audio"])
        if heard := [medium.samples for medium in media if medium.kind == "audio"]:
            inputs |= self._spectrograms(heard) | audio_places(media, self._num_sounds)
        return inputs

    def _spectrograms(self, heard: Sequence[FloatArray]) -> dict[str, npt.NDArray[Any]]:
        """Each sound followed by silence: transformers pads all to 300 s, which only takes time."""
        extractor, lengths = self._hf.feature_extractor, [len(samples) for samples in heard]
        padded = np.zeros((len(heard), max(lengths) + extractor.n_fft), np.float32)
        for row, samples in zip(padded, heard, strict=True):
            row[: len(samples)] = samples
        out = extractor(
            list(padded), sampling_rate=extractor.sampling_rate, padding=False, return_tensors="np"
        )
        frames = np.array([self._num_frames(length) for length in lengths])
        most = frames.max()
        return {
            "input_features": np.asarray(out["input_features"], np.float32)[:, :, :most],
            "feature_attention_mask": (np.arange(most) < frames[:, None]).astype(np.int64),
        }
