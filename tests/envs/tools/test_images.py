"""Places in every frame come out where arithmetic says, and what is not a place gets an error."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vlrl.coordinates import Canvas, frame_extent
from vlrl.envs.tools.declare import Given, Tool, ToolResult
from vlrl.envs.tools.open import open_tools
from vlrl.errors import ConfigError

WIDTH, HEIGHT = 120, 80


def coded(width: int = WIDTH, height: int = HEIGHT) -> Image.Image:
    """An image whose pixel (x, y) has the colour (x, y, 7)."""
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    return Image.fromarray(np.stack([x, y, np.full_like(x, 7)], axis=2).astype(np.uint8))


def opened(name: str, **options: Any) -> Tool:
    (made,) = open_tools([name], {name: options} if options else {})
    return made


def seen(shown: tuple[int, int] = (HEIGHT, WIDTH)) -> Given:
    return Given([coded()], [Canvas((HEIGHT, WIDTH), shown)])


def image(result: ToolResult) -> np.ndarray:
    (part,) = result.parts
    assert isinstance(part, Image.Image), part
    return np.asarray(part)


def text(result: ToolResult) -> str:
    (part,) = result.parts
    assert result.failed and isinstance(part, str)
    return part


@pytest.mark.parametrize(
    ("frame", "box"),
    [
        ("resized_pixels", [10, 10, 30, 20]),  # shown at half size
        ("original_pixels", [20, 20, 60, 40]),
        ("per_1000", [1000 / 6, 250, 500, 500]),
        ("per_999", [999 / 6, 249.75, 499.5, 499.5]),
        ("unit", [1 / 6, 0.25, 0.5, 0.5]),
    ],
)
def test_one_part_in_every_frame(frame: str, box: list[float]) -> None:
    cut = image(opened("crop", frame=frame).run({"box": box}, seen((HEIGHT // 2, WIDTH // 2))))
    # Sixths are not binary numbers: an edge may fall a hair before or behind the pixel's.
    np.testing.assert_allclose(cut[0, 0], [20, 20, 7], atol=1)
    np.testing.assert_allclose(cut[-1, -1], [59, 39, 7], atol=1)
    assert abs(cut.shape[1] - 40) <= 1 and abs(cut.shape[0] - 20) <= 1


@settings(deadline=None)
@given(st.data(), st.sampled_from(["resized_pixels", "original_pixels", "per_1000", "per_999", "unit"]))
def test_a_crop_is_the_smallest_that_covers_its_box(data: st.DataObject, frame: Any) -> None:
    given_ = seen((data.draw(st.integers(1, 300)), data.draw(st.integers(1, 300))))
    wide, high = frame_extent(frame, given_.canvases[0])
    (x0, x1), (y0, y1) = (
        sorted((data.draw(st.floats(0, extent)), data.draw(st.floats(0, extent)))) for extent in (wide, high)
    )
    result = opened("crop", frame=frame).run({"box": [x0, y0, x1, y1]}, given_)
    if result.failed:
        assert x0 == x1 or y0 == y1 or "as long as wide" in text(result) or "empty" in text(result)
        return
    cut = image(result).astype(float)
    left, top = cut[0, 0, :2]
    assert left <= x0 / wide * WIDTH + 1e-6 and left + 1 > x0 / wide * WIDTH - 1e-6
    assert top <= y0 / high * HEIGHT + 1e-6 and top + 1 > y0 / high * HEIGHT - 1e-6
    right, bottom = cut[-1, -1, :2] + 1
    assert right >= x1 / wide * WIDTH - 1e-6 and right - 1 < x1 / wide * WIDTH + 1e-6
    assert bottom >= y1 / high * HEIGHT - 1e-6 and bottom - 1 < y1 / high * HEIGHT + 1e-6


def test_the_whole_image_is_itself() -> None:
    for frame in ("resized_pixels", "per_1000", "per_999", "unit"):
        wide, high = frame_extent(frame, seen().canvases[0])  # type: ignore[arg-type]
        cut = image(opened("crop", frame=frame).run({"box": [0, 0, wide, high]}, seen()))
        np.testing.assert_array_equal(cut, np.asarray(coded()))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"box": [5, 5, 5, 9]}, "the box [5, 5, 5, 9] is empty; it is [left, top, right, bottom]"),
        ({"box": [9, 5, 5, 9]}, "is empty"),
        ({"box": [0, 0, 121, 9]}, "[121, 9] lies outside the image: x is from 0 to 120 and y from 0 to 80"),
        ({"box": [-1, 0, 5, 9]}, "[-1, 0] lies outside"),
        ({"box": [0, 3, 120, 3.5]}, "more than 100 times as long as wide"),
        ({"box": [0, 0, 1e308, 9]}, "lies outside"),
        ({"box": [0, 0, 9]}, 'argument "box" must be a list, each a number, 4 of them'),
        ({"box": [0, 0, 9, 9], "image_number": 2}, "there is no image 2; so far there are 1, counted from 1"),
        ({"box": [0, 0, 9, 9], "image_number": 0}, "there is no image 0"),
        (
            {"box": [0, 0, 9, 9], "image_number": "../../etc/passwd"},
            'argument "image_number" must be a whole number',
        ),
    ],
)
@pytest.mark.parametrize("name", ["crop", "zoom"])
def test_what_is_no_part_is_told_so(name: str, arguments: dict[str, Any], said: str) -> None:
    assert said in text(opened(name).run(arguments, seen()))


def test_zoom_enlarges_and_keeps_the_shape() -> None:
    zoomed = image(opened("zoom", side=200).run({"box": [10, 20, 50, 40]}, seen()))
    assert zoomed.shape == (100, 200, 3)
    # A linear ramp stays one: pixel i of the result is at 10 + (i + 1/2) / 5 of the image's x axis.
    inside = np.arange(20, 180)
    np.testing.assert_allclose(zoomed[50, inside, 0], 10 + (inside + 0.5) / 5 - 0.5, atol=0.75)
    tall = image(opened("zoom", side=90).run({"box": [0, 0, 1, 80]}, seen()))
    assert tall.shape == (90, 1, 3)


def test_quarter_turns_and_mirrors_are_exact() -> None:
    before = np.asarray(coded())
    for degrees, turns in [(0, 0), (90, -1), (180, 2), (270, 1), (-90, 1), (360, 0)]:
        turned = image(opened("rotate").run({"degrees": degrees}, seen()))
        np.testing.assert_array_equal(turned, np.rot90(before, turns))
    np.testing.assert_array_equal(
        image(opened("flip").run({"direction": "horizontal"}, seen())), before[:, ::-1]
    )
    np.testing.assert_array_equal(image(opened("flip").run({"direction": "vertical"}, seen())), before[::-1])


def test_a_turned_image_stays_in_view_and_in_bounds() -> None:
    turned = image(opened("rotate").run({"degrees": 45}, seen()))
    side = (WIDTH + HEIGHT) / np.sqrt(2)
    assert abs(turned.shape[0] - side) <= 2 and abs(turned.shape[1] - side) <= 2
    assert (turned[0, 0] == 255).all()
    large = Given([Image.new("RGB", (4000, 4000))], [Canvas((4000, 4000), (4000, 4000))])
    assert "too large" in text(opened("rotate").run({"degrees": 45}, large))
    assert '"degrees" must be' in text(opened("rotate").run({"degrees": 1e9}, seen()))


RED = (255, 0, 0)


def drawn(**arguments: Any) -> set[tuple[int, int]]:
    """(x, y) of the pixels that turned red."""
    after = image(opened("draw").run({"colour": "red", **arguments}, seen()))
    return {(int(x), int(y)) for y, x in np.argwhere((after == RED).all(axis=2))}


def test_what_is_drawn_is_where_it_was_asked_for() -> None:
    edge = {(x, y) for x in range(10, 30) for y in range(20, 40) if x in (10, 29) or y in (20, 39)}
    assert drawn(shape="box", at=[10, 20, 30, 40]) == edge
    assert drawn(shape="line", at=[5, 8, 25, 8]) == {(x, 8) for x in range(5, 26)}
    dot = drawn(shape="point", at=[60, 30])
    assert (60, 30) in dot and all(abs(x - 60) <= 2 and abs(y - 30) <= 2 for x, y in dot)
    # The edges of letters are mixed with what is behind them.
    after = image(opened("draw").run({"shape": "text", "at": [40, 50], "text": "A"}, seen()))
    written = {(int(x), int(y)) for y, x in np.argwhere((after != np.asarray(coded())).any(axis=2))}
    assert len(written) > 10 and all(40 <= x < 55 and 50 <= y < 65 for x, y in written)


def test_drawing_changes_no_image_but_its_own() -> None:
    known = seen()
    assert not opened("draw").run({"shape": "point", "at": [5, 5]}, known).failed
    np.testing.assert_array_equal(np.asarray(known.images[0]), np.asarray(coded()))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"shape": "box", "at": [1, 2]}, '"at" must be 4 numbers for a box, not 2'),
        ({"shape": "point", "at": [1, 2, 3]}, '"at" must be 2 numbers for a point, not 3'),
        ({"shape": "box", "at": [9, 2, 1, 9]}, "is empty"),
        ({"shape": "line", "at": [0, 0, 500, 0]}, "lies outside the image"),
        ({"shape": "circle", "at": [1, 2]}, 'must be one of "box", "line", "point", "text"'),
        ({"shape": "text", "at": [1, 2], "text": "x" * 101}, 'argument "text" must be a string'),
        ({"shape": "point", "at": [1, 2], "colour": "url(x)"}, 'argument "colour" must be one of "red"'),
    ],
)
def test_what_cannot_be_drawn_is_told_so(arguments: dict[str, Any], said: str) -> None:
    assert said in text(opened("draw").run(arguments, seen()))


def test_the_description_says_the_frame() -> None:
    said = opened("crop", frame="per_1000").schema["function"]["description"]
    assert said == (
        "Cut a part out of an image. "
        "Coordinates run from 0 to 1000 along both sides of the image, from its top left corner."
    )
    with pytest.raises(ConfigError, match="frame='per_100' is not one of original_pixels, resized_pixels"):
        opened("crop", frame="per_100")
    with pytest.raises(ConfigError, match="side=0 must be from 1"):
        opened("zoom", side=0)
