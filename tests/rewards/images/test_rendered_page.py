"""Page code: rendered for real, compared with what the right page shows, and nothing else paid."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from builders import make_sample, make_trajectory
from images import think

from vlrl.config.options import RewardConfig
from vlrl.envs.gui.web.chromium import browser
from vlrl.envs.gui.web.render import render
from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.images.rendered_page import page_code
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Media

STYLE = "<style>body{margin:0} h1{background:navy;color:white;padding:20px} td{border:2px solid}</style>"
RIGHT = f"<!DOCTYPE html>{STYLE}<h1>Prices</h1><table><tr><td>Tea<td>3<tr><td>Coffee<td>5</table>"
OTHER = "<!DOCTYPE html><body style='background:gold'><ul><li>one<li>two<li>three</ul>"


@pytest.fixture(scope="module", autouse=True)
def no_browser_left() -> Iterator[None]:
    yield
    browser.close_idle()


@pytest.fixture(scope="module")
def page() -> tuple[Media, ...]:
    """What the right code shows."""
    shown = render(RIGHT, (320, 240), 30.0)
    assert shown is not None
    return (Media("image", "", shown.pixels[None], shown.pixels.shape[:2], (1, 1, 1), 1),)


def score(text: str, page: tuple[Media, ...], answer: Any = None, **options: Any) -> tuple[float, float]:
    found = page_code(think(text), answer, media=page, **options)
    return float(found.value or 0.0), found.notes["page_code/shown"]


def test_the_right_page_earns_all_and_another_less(page: tuple[Media, ...]) -> None:
    assert resolve("rewards", "page_code") is page_code
    assert score(RIGHT, page) == score(f"```html\n{RIGHT}\n```", page) == (1, 1)
    near, shown = score(RIGHT.replace("Coffee", "Water"), page)
    assert shown == 1 and 0.5 < near < 1
    far, shown = score(OTHER, page)
    assert shown == 1 and far < 0.1 < near


def test_the_text_has_its_share(page: tuple[Media, ...]) -> None:
    plain = "<p>Prices Tea 3 Coffee 5"
    for answer in (RIGHT, "Prices Tea 3 Coffee 5"):
        assert score(RIGHT, page, answer, text_share=0.5) == (1, 1)
        assert score(plain, page, answer, text_share=1.0) == (1, 1)
        assert score(plain.replace("Tea", "Ice"), page, answer, text_share=1.0)[0] == pytest.approx(0.8)
        assert score("<p>" + "Prices Tea 3 Coffee 5 " * 2, page, answer, text_share=1.0)[0] == 0
    assert score(f"<div hidden>{plain}</div>", page, RIGHT, text_share=1.0)[0] == 0
    half = score(plain, page, RIGHT, text_share=0.5)[0]
    assert half == pytest.approx(0.5 + 0.5 * score(plain, page)[0])


@pytest.mark.parametrize(
    "text", ["", "Prices", "```html\n```", "```html\n<p>a\n```\n```html\n<p>b\n```", "```python\n<p>\n```",
             f"Here it is:\n```html\n{RIGHT}\n```", "<p>" + "x" * 30_000],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_what_is_no_document_is_not_rendered(text: str, page: tuple[Media, ...]) -> None:
    assert score(text, page) == (0, 0)


@pytest.mark.parametrize(
    "text",
    ["<p></p>", "<body style='background:navy'>", "<script>for (;;);</script><p>x",
     "<img src='file:///etc/passwd' style='position:fixed;inset:0'>",
     "<canvas id=c width=320 height=240></canvas><script>const d = c.getContext('2d'), i ="
     "d.createImageData(320, 240); i.data.forEach((_, k) => i.data[k] = Math.random() * 255);"
     "d.putImageData(i, 0, 0)</script>"],
)  # fmt: skip
def test_a_page_that_shows_nothing_of_it_earns_nothing(text: str, page: tuple[Media, ...]) -> None:
    assert score(text, page, time_limit_s=3.0)[0] < 0.05


def test_the_size_is_the_images_or_given(page: tuple[Media, ...]) -> None:
    assert score(RIGHT, page, size=[320, 240]) == (1, 1)
    assert score(RIGHT, page, size=[640, 480])[0] < 0.9
    for size in ([320], ["320", 240], [320.0, 240]):
        with pytest.raises(ConfigError, match="size"):
            score(RIGHT, page, size=size)
    with pytest.raises(ValueError, match="cannot be rendered"):
        score(RIGHT, page, size=[320, 10_000])


def test_a_sample_without_a_page_is_a_failure_not_a_zero(page: tuple[Media, ...]) -> None:
    plain = np.full((1, 50, 50, 3), 200, np.uint8)
    for media in ((), (Media("image", "", plain, (50, 50), (1, 1, 1), 1),)):
        with pytest.raises(ValueError, match=r"media_index|plain"):
            page_code("", None, media=media)
    for answer in (None, "", "<p hidden>x</p>"):
        with pytest.raises(ValueError, match="answer"):
            score(RIGHT, page, answer, text_share=0.5)
    for options in ({"text_share": 1.5}, {"time_limit_s": 0}, {"sandbox": "none"}):
        with pytest.raises(ConfigError, match="page_code"):
            score(RIGHT, page, **options)


def test_in_a_run_it_works_in_the_workers(page: tuple[Media, ...]) -> None:
    """Their memory is limited, and they start no browser of this process's."""
    sample = make_sample(media=page)
    episodes = [make_trajectory(sample, [1], completion=think(text)) for text in (RIGHT, OTHER, "")]
    with ComposedReward([RewardConfig(name="page_code")]) as reward:
        scores = asyncio.run(reward.score_all(episodes))
    totals = [found.total for found in scores if not isinstance(found, RewardFailure)]
    assert len(totals) == 3 and totals[0] == 1 and totals[1] < 0.1 and totals[2] == 0
