"""Observations as bytes and back; bytes that are none are a failure, whatever they are."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest
from PIL import Image

from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.serve.wire import dumps, loads
from vlrl.protocols import Observation, StepResult, Video
from vlrl.seeds import derive_seed

RNG = np.random.default_rng(derive_seed("wire"))
PIXELS = RNG.integers(0, 256, (5, 7, 3), np.uint8)
FORM = {"choice": ["left", "ü"]}
SHOWN = Observation("é\n", (PIXELS, PIXELS[::-1]), (Video((PIXELS,), 2.5),), "tool", "so far", FORM)


@pytest.mark.parametrize("form", ["raw", "png"])
def test_everything_comes_back(form: Any) -> None:
    info = {"success": True, "n": 3, "x": 0.1, "said": "ü"}
    result = loads(dumps(StepResult(SHOWN, 1 / 3, False, True, info), form), "here")
    assert (result.reward, result.terminated, result.truncated, result.info) == (1 / 3, False, True, info)
    shown = result.observation
    assert (shown.text, shown.role, shown.summary, shown.videos[0].fps) == ("é\n", "tool", "so far", 2.5)
    assert shown.structured_outputs == FORM
    for mine, theirs in zip(SHOWN.images, shown.images, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(PIXELS, shown.videos[0].frames[0])


def test_several_agents() -> None:
    back = loads(dumps({"a": Observation("1"), "b": SHOWN}, "raw"), "here")
    assert (back["a"], back["b"].text) == (Observation("1"), SHOWN.text)


@pytest.mark.parametrize("mode", ["RGBA", "L", "P", "1", "LA"])
def test_pil_images_stay_what_they_are(mode: str) -> None:
    image = Image.fromarray(PIXELS).convert(mode)
    (back,) = loads(dumps(Observation("", (image,)), "raw"), "here").images
    assert back.mode == mode
    np.testing.assert_array_equal(np.asarray(image.convert("RGBA")), np.asarray(back.convert("RGBA")))


def test_a_mode_that_png_does_not_have_is_refused() -> None:
    with pytest.raises(EnvFailure, match="cannot be sent"):
        dumps(Observation("", (Image.new("CMYK", (2, 2)),)), "raw")


def packed(value: Any, rest: bytes = b"") -> bytes:
    text = json.dumps(value).encode()
    return struct.pack(">I", len(text)) + text + rest


def one(image: Any) -> Any:
    return {"observation": {"text": "", "role": "user", "summary": "", "videos": [], "images": [image]}}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff\xff\xff\xff{}",
        packed([]),
        packed({}),
        packed({"step": {"reward": "much"}}),
        packed(one({"form": "raw", "shape": [2, 2, 3], "num_bytes": 12}), b"short"),
        packed(one({"form": "raw", "shape": [10**6, 10**6, 3], "num_bytes": 0})),
        packed(one({"form": "raw", "shape": [-2, -2, 3], "num_bytes": 12}), b"x" * 12),
        packed(one({"form": "png", "is_array": True, "num_bytes": 4}), b"\x89PNG"),
        dumps(SHOWN, "png")[:-200],
        dumps(SHOWN, "raw")[:-1],
    ],
)
def test_what_is_no_answer_is_a_failure(data: bytes) -> None:
    with pytest.raises(EnvFailure, match="here"):
        loads(data, "here")


def test_bytes_changed_at_random_are_an_answer_or_a_failure() -> None:
    whole = dumps(StepResult(SHOWN, 1.0, False, False, {}), "png")
    for _ in range(500):
        data = bytearray(whole)
        for place in RNG.integers(0, len(data), 3):
            data[place] = RNG.integers(256)
        try:
            assert isinstance(loads(bytes(data), "here"), StepResult)
        except EnvFailure as failure:
            assert failure.kind == "raised"
