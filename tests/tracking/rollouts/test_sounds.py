"""What is kept of a sound: a WAV file and the image of its pitches; the viewer and a rescoring read them."""

from __future__ import annotations

import base64
import io
import wave
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_rollouts import FakeProcessor, make_group
from PIL import Image
from sounds import tone

from vlrl.chat_client.images import sound_part
from vlrl.check.rescore.rescore import _medium
from vlrl.tracking.rollouts.records import encoded_images, images_of, rollout_records, write_images
from vlrl.tracking.rollouts.sound import image_width, samples_of, sound_image, wav_of
from vlrl.types import Media


def sound(hertz: float, seconds: float = 0.5) -> Media:
    samples = (tone(seconds, hertz) * 32768).astype("<i2")
    frames = samples.view(np.uint8).reshape(-1, 2)
    return Media("audio", f"{hertz:g}Hz", frames, (0, 0), (1, 1, 12), 12, fps=16_000.0)


def test_a_wav_file_has_every_sample() -> None:
    audio = sound(440)
    with wave.open(io.BytesIO(wav_of(audio))) as file:
        assert (file.getframerate(), file.getnchannels(), file.getnframes()) == (16_000, 1, 8000)
    assert np.array_equal(samples_of(wav_of(audio)), audio.frames)
    part = sound_part(audio)["input_audio"]
    assert (part["format"], base64.b64decode(part["data"])) == ("wav", wav_of(audio))


@pytest.mark.parametrize(("hertz", "row"), [(1000, 55), (4000, 31), (7000, 7)])
def test_the_image_shows_the_pitch(hertz: float, row: int) -> None:
    """64 rows for 8,000 Hz, the lowest at the bottom; 50 columns a second, at most 1,200."""
    image = sound_image(sound(hertz))
    assert (image.shape, image.dtype) == ((64, 25, 3), np.uint8)
    assert abs(int(image[:, 5, 0].argmax()) - row) <= 1
    assert sound_image(sound(hertz, 60.0)).shape == (64, 1200, 3)
    assert image_width(sound(hertz).without_frames()) == 25


def test_silence_and_the_shortest_sound_have_an_image_too() -> None:
    silent = replace(sound(440), frames=np.zeros((1, 2), np.uint8))
    assert sound_image(silent).shape == (64, 1, 3)


def test_a_run_keeps_both_and_a_rescoring_reads_the_sound_again(tmp_path: Path) -> None:
    group, audio = make_group(), sound(440)
    for trajectory in group.trajectories:
        (ledger,) = trajectory.ledgers
        object.__setattr__(ledger, "media", (audio, ledger.media[1]))
    write_images(tmp_path, images_of([group]))
    assert set(encoded_images([audio])) == {"media/440Hz.png", "media/440Hz.wav"}
    record: dict[str, Any] = rollout_records([group], FakeProcessor(), phase="after", step=0)[0]
    medium = next(item for item in record["media"] if item["kind"] == "audio")
    with Image.open(tmp_path / medium["path"]) as image:
        assert image.size == (medium["width"], medium["height"]) == (25, 64)
    again = _medium(medium, tmp_path)
    assert (again.kind, again.fps, again.sha256) == ("audio", 16_000.0, audio.sha256)
    assert np.array_equal(again.frames, audio.frames)
