"""Nothing is lost between rows and bars; equal content is found however it is kept."""

from __future__ import annotations

import base64
import io
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from builders import random_image
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vlrl.check.data.content import prompt_sha256, source_sha256
from vlrl.check.data.summary import MAX_BINS, histogram
from vlrl.config.data import MediaConfig


@given(st.lists(st.integers(0, 200_000), min_size=1, max_size=200))
def test_every_value_is_in_the_bar_that_names_it(values: list[int]) -> None:
    bars = histogram(values)
    assert len(bars) <= MAX_BINS + 1
    for bar in bars:
        assert bar["num_rows"] == sum(bar["from"] <= value < bar["below"] for value in values)
    assert sum(bar["num_rows"] for bar in bars) == len(values)
    assert all(left["below"] == right["from"] for left, right in pairwise(bars))


def test_nothing_has_no_bars() -> None:
    assert histogram([]) == []


def test_an_image_has_one_hash_wherever_its_bytes_are(tmp_path: Path) -> None:
    file = tmp_path / "a.png"
    Image.fromarray(random_image(20, 30)).save(file)
    data = file.read_bytes()
    text = base64.b64encode(data).decode()
    sources: list[Any] = [
        file,
        str(file),
        data,
        {"bytes": data, "path": None},
        f"data:image/png;base64,{text}",
    ]
    assert len({source_sha256(source, MediaConfig(), "w") for source in sources}) == 1
    other = io.BytesIO()
    Image.fromarray(random_image(20, 30, seed=1)).save(other, "PNG")
    assert source_sha256(other.getvalue(), MediaConfig(), "w") != source_sha256(file, MediaConfig(), "w")
    assert source_sha256(random_image(2, 3), MediaConfig(), "w") != source_sha256(
        random_image(2, 3).reshape(3, 2, 3), MediaConfig(), "w"
    )


@pytest.mark.parametrize(
    ("text", "same"), [("How  MANY\ncats?", True), ("Ｈow many cats?", True), ("How many cat s?", False)]
)
def test_prompts_are_compared_without_case_and_space(text: str, same: bool) -> None:
    def said(words: str) -> list[dict[str, Any]]:
        return [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": words}]}]

    assert (prompt_sha256(said(text)) == prompt_sha256(said("How many cats?"))) is same


def test_where_an_image_stands_matters() -> None:
    image, text = {"type": "image"}, {"type": "text", "text": "this"}
    hashes = {prompt_sha256([{"role": "user", "content": parts}]) for parts in ([image, text], [text, image])}
    assert len(hashes) == 2
