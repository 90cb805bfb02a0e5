"""Audio: any file or array to one channel of samples at a model's rate, and the ways it can be wrong."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import random_image
from sounds import CODECS, tone, write_sound
from videos import write_video

from vlrl.config.data import MediaConfig
from vlrl.errors import DataError
from vlrl.processors.media.audio import AudioRequest
from vlrl.processors.media.image import Frames
from vlrl.processors.media.sources import names_file
from vlrl.processors.media.store import MediaStore
from vlrl.types import Media

WHERE, RATE = "sample 'x'", 16_000


@pytest.fixture(scope="module")
def store() -> MediaStore:
    return MediaStore(MediaConfig(cache_gib=0, max_video_s=60))


def heard(frames: Frames) -> np.ndarray[Any, Any]:
    """The samples as floats."""
    assert frames.kind == "audio"
    assert frames.fps == RATE
    assert not frames.pixels.flags.writeable
    return Media("audio", "", frames.pixels, (0, 0), (1, 1, 1), 1, fps=frames.fps).samples


def pitch(samples: np.ndarray[Any, Any]) -> float:
    """The strongest frequency, in hertz."""
    return float(np.abs(np.fft.rfft(samples)).argmax() * RATE / len(samples))


@pytest.mark.parametrize("suffix", CODECS)
@pytest.mark.parametrize(("rate", "channels"), [(16_000, 1), (48_000, 2)])
def test_every_kind_of_file_gives_its_sound(
    store: MediaStore, tmp_path: Path, suffix: str, rate: int, channels: int
) -> None:
    path = write_sound(tmp_path / f"a{suffix}", tone(1.0, 440, rate=rate), rate=rate, channels=channels)
    samples = heard(store.audio(path, AudioRequest(RATE), WHERE))
    assert abs(len(samples) - RATE) < 0.15 * RATE  # some codecs begin or end with silence
    assert abs(pitch(samples) - 440) < 3
    assert 0.2 < np.abs(samples).max() < 0.9


def test_a_wav_file_at_the_model_s_rate_is_taken_sample_by_sample(store: MediaStore, tmp_path: Path) -> None:
    given = tone(0.3, 1000)
    frames = store.audio(write_sound(tmp_path / "a.wav", given), AudioRequest(RATE), WHERE)
    assert frames.pixels.shape == (4800, 2)
    assert np.abs(heard(frames) - given).max() < 2 / 32768


@pytest.mark.parametrize("kind", ["path", "bytes", "base64", "data URL", "feature", "array", "stereo array"])
def test_sources_of_the_same_sound_give_the_same_samples(
    store: MediaStore, tmp_path: Path, kind: str
) -> None:
    given = np.round(tone(0.3) * 32768).clip(-32768, 32767).astype(np.int16)
    path = write_sound(tmp_path / "a.wav", given / 32768)
    text = base64.b64encode(path.read_bytes()).decode()
    source: Any = {
        "path": str(path),
        "bytes": path.read_bytes(),
        "base64": text,
        "data URL": f"data:audio/wav;base64,{text}",
        "feature": {"bytes": path.read_bytes(), "path": None},
        "array": {"array": given, "sampling_rate": RATE},
        "stereo array": {"array": np.stack([given, given]) / 32768, "sampling_rate": RATE},
    }[kind]
    whole = heard(store.audio(path, AudioRequest(RATE), WHERE))
    assert np.array_equal(heard(store.audio(source, AudioRequest(RATE), WHERE)), whole)


def test_seconds_are_cut_out(store: MediaStore, tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.wav", np.concatenate([tone(0.5, 300), tone(0.5, 900)]))
    request = AudioRequest.of(RATE, {"audio_start": 0.5, "end_s": 0.9}, WHERE)
    samples = heard(store.audio(path, request, WHERE))
    assert len(samples) == round(0.4 * RATE)
    assert abs(pitch(samples) - 900) < 5


def test_the_sound_of_a_video_is_its_audio_track(store: MediaStore, tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.webm", tone(0.5, 700))
    assert abs(pitch(heard(store.audio(path, AudioRequest(RATE), WHERE))) - 700) < 5


def test_it_is_decoded_once_and_kept(tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.wav", tone(0.3))
    config = MediaConfig(cache_dir=tmp_path / "cache", cache_gib=1)
    first = MediaStore(config).audio(path, AudioRequest(RATE), WHERE)
    decoder: Any = _NoDecoder()
    again = MediaStore(config, videos=decoder).audio(path, AudioRequest(RATE), WHERE)
    assert again.sha256 == first.sha256
    assert np.array_equal(again.pixels, first.pixels)


class _NoDecoder:
    def hear(self, *_: Any) -> Any:
        raise AssertionError("decoded again")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: write_video(p / "silent.mp4"), "has no audio track, only video; drop the row"),
        (lambda p: _written(p / "a.wav", b"RIFF\0\0\0\0WAVEfmt "), "is broken .*; replace the file or drop"),
        (lambda p: _written(p / "a.wav", b"not a sound at all"), "is not an audio that is read here"),
        (lambda p: p / "missing.wav", "does not exist"),
        (lambda p: {"array": [0.0, float("nan")], "sampling_rate": RATE}, "not finite"),
        (lambda p: {"array": ["a"], "sampling_rate": RATE}, "is not .num_samples"),
        (lambda p: {"array": [0.0, 0.1]}, "needs its sampling_rate, 1 to 1,000,000, not None"),
        (lambda p: {"array": [0.0, 0.1], "sampling_rate": 1e12}, "sampling_rate, .*, not 1000000000000"),
        (lambda p: {"array": [[0.0], [0.0, 0.1]], "sampling_rate": RATE}, "channels of unlike lengths"),
        (lambda p: {"array": [0, 1 << 20], "sampling_rate": RATE}, "integers beyond 16 bits"),
        (lambda p: random_image(8, 8), "a ndarray was given for an audio; give a file"),
        (
            lambda p: {"array": np.zeros(61 * 8000), "sampling_rate": 8000},
            "claims to last 61 s, more than media.max_video_s=60; cut it",
        ),
    ],
)  # fmt: skip
def test_what_is_no_sound_is_named_with_what_to_do(
    store: MediaStore, tmp_path: Path, make: Any, words: str
) -> None:
    with pytest.raises(DataError, match=rf"^sample 'x'.*{words}"):
        store.audio(make(tmp_path), AudioRequest(RATE), WHERE)


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"start_s": "two"}, "start_s is 'two'; give seconds"),
        ({"end_s": -1.0}, "end_s is -1.0; give seconds"),
        ({"start_s": 2.0, "end_s": 2.0}, "end_s=2 is not after its start_s=2"),
    ],
)
def test_wrong_seconds_are_refused(part: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        AudioRequest.of(RATE, part, WHERE)


def test_seconds_beyond_the_end_are_refused(store: MediaStore, tmp_path: Path) -> None:
    path = write_sound(tmp_path / "a.wav", tone(0.3))
    with pytest.raises(DataError, match=r"has 0\.30 s of sound, and none from start_s=1 on"):
        store.audio(path, AudioRequest(RATE, start_s=1.0), WHERE)


def test_a_path_on_a_server_is_not_taken_for_a_sound() -> None:
    """Its first letters are base64 of what an mp3 begins with."""
    assert names_file("//server/share/images/a1/b2/c3.png")
    assert names_file("//server/share/sounds/abcdefghijkl")


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
