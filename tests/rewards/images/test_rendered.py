"""Chart code: run for real in the sandbox, compared with what the right code draws, and nothing else paid."""

from __future__ import annotations

import io

import numpy as np
import pytest
from images import think
from PIL import Image

from vlrl.envs.tools.sandbox import Limits, run_python
from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.images.rendered import chart_code, code_of, decoded
from vlrl.types import Media

RIGHT = "import matplotlib.pyplot as plt\nplt.figure(figsize=(3, 2))\nplt.bar(['a', 'b', 'c'], [3, 5, 2])\n"
OTHER = RIGHT.replace("[3, 5, 2]", "[1, 1, 6]")


def png(pixels: np.ndarray) -> bytes:
    written = io.BytesIO()
    Image.fromarray(pixels).save(written, "PNG")
    return written.getvalue()


@pytest.fixture(scope="module")
def chart() -> tuple[Media, ...]:
    """What the right code draws, drawn by it."""
    code = RIGHT + "plt.savefig('out.png', dpi=100)\n"
    pixels = decoded(run_python(code, {}, Limits(20.0, 2048), sandboxed=True).image)
    assert pixels is not None and pixels.shape == (200, 300, 3)
    return (Media("image", "", pixels[None], pixels.shape[:2], (1, 1, 1), 1),)


def score(text: str, chart: tuple[Media, ...]) -> tuple[float, float]:
    found = chart_code(think(text), None, media=chart, time_limit_s=20.0)
    return float(found.value or 0.0), found.notes["chart_code/ran"]


def test_the_right_code_earns_all_and_another_chart_less(chart: tuple[Media, ...]) -> None:
    assert resolve("rewards", "chart_code") is chart_code
    assert score(f"```python\n{RIGHT}```", chart) == (1, 1)
    value, ran = score(OTHER, chart)
    assert ran == 1 and 0 < value < 0.7


def test_code_that_cheats_or_fails_earns_nothing(chart: tuple[Media, ...]) -> None:
    blank = "import matplotlib.pyplot as plt\nplt.figure(figsize=(3, 2))"
    assert score(blank, chart) == (0, 1)
    fake = "open('out.png', 'wb').write(b'PNG')\nopen('image_1.png')"  # the reference is not there
    assert score(fake, chart) == (0, 0)


@pytest.mark.parametrize("text", ["", "```python\n```", "```python\na\n```\n```python\nb\n```", "x" * 30_000])
def test_no_program_is_not_run(text: str, chart: tuple[Media, ...]) -> None:
    assert score(text, chart) == (0, 0)


def test_programs_and_images_are_read_strictly() -> None:
    for text in ("a = 1", "```python\na = 1\n```", "```\na = 1\n```"):
        assert code_of(text, "python|py") == "a = 1"
    assert code_of("Here:\n```python\na = 1\n```", "python|py") == ""
    assert code_of("```html\na = 1\n```", "python|py") == ""
    black = np.zeros((4, 6, 3), np.uint8)
    assert np.array_equal(decoded(png(black)), black)
    assert decoded(png(np.zeros((4, 6, 4), np.uint8))) is not None  # transparent is white
    bomb = io.BytesIO()
    Image.new("1", (5000, 5000)).save(bomb, "PNG")
    for data in (b"", b"GIF89a", png(black)[:40], bomb.getvalue()):
        assert decoded(data) is None


def test_a_sample_without_a_chart_is_a_failure_not_a_zero(chart: tuple[Media, ...]) -> None:
    plain = np.full((1, 50, 50, 3), 200, np.uint8)
    for media in ((), (Media("image", "", plain, (50, 50), (1, 1, 1), 1),)):
        with pytest.raises(ValueError, match=r"media_index|plain"):
            chart_code("", None, media=media)
    with pytest.raises(ConfigError, match="chart_code"):
        chart_code("", None, media=chart, sandbox="none")
