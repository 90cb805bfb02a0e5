"""Gemma 4 E2B and E4B: turns in angle marks; images enlarged to nearly the same number of tokens; audio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from vlrl.errors import ConfigError
from vlrl.processors.family import FamilyProcessor
from vlrl.processors.media.audio import Hearing, audio_places
from vlrl.processors.media.video_metadata import frame_counts, metadata_of
from vlrl.types import Media, MediaShape

if TYPE_CHECKING:
    from vlrl.config import Config


LEAST_S = 0.1
"""Shortest audio, in seconds: two tokens."""
VIDEO_TOKENS = 70
"""Most tokens of a frame in vLLM, whatever a model's processor says."""


class Gemma4Processor(FamilyProcessor):
    """Sizes follow from an image's shape and the model's max_soft_tokens; max_pixels does not change them.

    A frame of a video is a smaller image, its minute and second before it.
    """

    end_of_turn = "<turn|>"
    end_tokens = ("<eos>", "<|tool_response>")
    media_tokens = (
        "<|image|>", "<|image>", "<image|>", "<|video|>", "<|audio|>", "<|audio>", "<audio|>",
    )  # fmt: skip

    takes_video = True

    def __init__(self, config: Config) -> None:
        from vlrl.model.attention import require_causal

        super().__init__(config)
        text = self._model_config.get_text_config()
        require_causal(text)  # before an engine and ranks are started
        if text.hidden_size_per_layer_input and text.pad_token_id != 0:
            raise ConfigError(
                f"model.path: text_config.pad_token_id={text.pad_token_id}: transformers gives the tokens of "
                "an image the layers' embeddings of that token, vLLM those of token 0; give 0, as published"
            )
        images = self._hf.image_processor
        self.takes_video = int(self._hf.video_processor.max_soft_tokens) == VIDEO_TOKENS
        self._token_side = int(images.patch_size * images.pooling_kernel_size)

    @property
    def engine_options(self) -> Mapping[str, Any]:
        """How many tokens an image has at most; vLLM would go by the model's config, not its processor's."""
        return {"max_soft_tokens": int(self._hf.image_processor.max_soft_tokens)}

    def hearing(self) -> Hearing | None:
        """An audio has as many tokens at most as the processor says: 30 s as published."""
        if self._model_config.audio_config is None:
            return None
        most_s = self._hf.audio_seq_length * self._hf.audio_ms_per_token / 1000
        return Hearing(int(self._hf.feature_extractor.sampling_rate), LEAST_S, most_s)

    def fit(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """What `_fitted` gives, so that it stays."""
        return self._fitted((height, width), self._most_tokens("image"))

    def fit_video(self, height: int, width: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
        """The same with fewer tokens."""
        return self._fitted((height, width), self._most_tokens("video"))

    def grid(self, shape: MediaShape) -> tuple[int, int, int]:
        """Patches, before they are pooled; tokens of an audio in a row."""
        if shape.kind == "audio":
            return 1, 1, self._num_sounds(shape.num_frames)
        height, width = shape.size
        patch = int(self._hf.image_processor.patch_size)
        return shape.num_frames, height // patch, width // patch

    def expand(self, shape: MediaShape) -> str:
        """A bracketed run of pads, one for each square of pooled patches or about 40 ms of sound.

        Of a video, one for each frame.
        """
        if shape.kind == "audio":
            run = self._hf.audio_token * self._num_sounds(shape.num_frames)
            return f"{self._hf.boa_token}{run}{self._hf.eoa_token}"
        height, width = shape.size
        num_tokens = (height // self._token_side) * (width // self._token_side)
        if shape.kind == "image":
            return str(self._hf.replace_image_token({"num_soft_tokens_per_image": [num_tokens]}, 0))
        told = {"num_soft_tokens_per_video": [num_tokens], "video_metadata": [metadata_of(shape)]}
        return str(self._hf.replace_video_token(told, 0))

    def pixels(self, media: Sequence[Media]) -> dict[str, npt.NDArray[Any]]:
        """pixel_values [images, patches, 3 · side²] float32; image_position_ids [images, patches, 2] int64.

        Frames are images. Where there are others they get as many patches, those at position -1 ignored. With
        videos also num_frames, see `vlrl.model.kernels.videos`; with audios, `vlrl.model.omni.towers.AUDIO`.
        """
        seen = [medium for medium in media if medium.kind != "audio"] or [self._blank()]
        made = [
            self._hf.image_processor(
                images=[*np.array(m.frames)],  # torch wants writable memory
                max_soft_tokens=self._most_tokens(m.kind),
                return_tensors="pt",
                input_data_format="channels_last",
            )
            for m in seen
        ]
        longest = max(out["pixel_values"].shape[1] for out in made)
        inputs = {
            name: np.concatenate([_padded(out[name].numpy(), longest, value) for out in made])
            for name, value in (("pixel_values", 0), ("image_position_ids", -1))
        }
        inputs |= frame_counts(seen)
        if heard := [medium.samples for medium in media if medium.kind == "audio"]:
            sounds = self._hf.feature_extractor(heard, return_tensors="np")
            inputs |= {name: sounds[name] for name in ("input_features", "input_features_mask")}
            inputs |= audio_places(media, self._num_sounds)
        return inputs

    def _most_tokens(self, kind: str) -> int:
        return VIDEO_TOKENS if kind == "video" else int(self._hf.image_processor.max_soft_tokens)

    def _fitted(self, fitted: tuple[int, int], most_tokens: int) -> tuple[int, int]:
        """The size that transformers resizes to, resized again until it stays.

        Rounding leaves room: 20 by 3 tokens of 70 become 21 by 3, and these 22 by 3. Sides only grow.
        """
        from transformers.models.gemma4.image_processing_gemma4 import get_aspect_ratio_preserving_size

        images, size = self._hf.image_processor, (0, 0)
        while fitted != size:
            size = fitted
            fitted = get_aspect_ratio_preserving_size(
                *size,
                patch_size=images.patch_size,
                max_patches=most_tokens * images.pooling_kernel_size**2,
                pooling_kernel_size=images.pooling_kernel_size,
            )
        return size

    def _num_sounds(self, num_samples: int) -> int:
        """Tokens of an audio."""
        return int(
            self._hf._compute_audio_num_tokens(range(num_samples), self._hf.feature_extractor.sampling_rate)
        )


def _padded(array: npt.NDArray[Any], length: int, value: int) -> npt.NDArray[Any]:
    """[n, length, width] of [n, fewer, width]."""
    return np.pad(array, ((0, 0), (0, length - array.shape[1]), (0, 0)), constant_values=value)
