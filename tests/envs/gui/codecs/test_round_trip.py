"""What a codec writes it reads again: the same action, at the same place as far as its numbers can tell."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import get_args

import pytest
from codec_samples import SAMPLES, VIEW
from hypothesis import given, settings
from hypothesis import strategies as st
from qwen_vl_utils.vision_process import smart_resize

from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import (
    Action,
    Click,
    Drag,
    Key,
    Move,
    Scroll,
    Swipe,
    SystemButton,
    Wait,
    points_of,
)
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.grammar.frames import FRAME_NAMES, Grid
from vlrl.envs.gui.codecs.grammar.next_words import next_words
from vlrl.envs.gui.codecs.open import CODECS, open_codec
from vlrl.parsing.tool_calls import write_call

SCREENS = [(640, 480), (1280, 800), (1920, 1080), (3840, 2160), (160, 210), (480, 630), (412, 915), (49, 31)]
# Of the brief's table: factors 28 and 32, ARPO's cap, UI-TARS' least.
SHOWN = [(28, 4 * 28**2, 16384 * 28**2), (32, 4 * 32**2, 16384 * 32**2), (28, 4 * 28**2, 2_100_000)]
SHOWN.append((28, 100 * 28**2, 16384 * 28**2))
VIEWS = [
    View(Canvas((h, w), smart_resize(h, w, factor, least, most), family), (0, 0))
    for (w, h), (factor, least, most) in itertools.product(SCREENS, SHOWN)
    for family in ("", "per_1000", "unit")
]
SPELT_BY_DIRECTION = ("uitars", "uitars_1_5", "gui_r1", "androidworld")


@st.composite
def views(draw: st.DrawFn) -> View:
    width, height = draw(st.integers(8, 4096)), draw(st.integers(8, 4096))
    shown = draw(st.integers(8, 4096)), draw(st.integers(8, 4096))
    return View(Canvas((height, width), shown, draw(st.sampled_from(["", "per_1000", "unit"]))), (0, 0))


def coordinates(side: int) -> st.SearchStrategy[int]:
    return st.one_of(st.sampled_from([0, 1, side // 2, side - 2, side - 1]), st.integers(0, side - 1))


def grains(name: str, view: View) -> tuple[Fraction, Fraction]:
    """What one step of a codec's numbers is worth, in pixels of the screen."""
    (height, width), (high, wide) = view.canvas.original_size, view.canvas.size
    frame = name.partition("@")[2] or CODECS[name].frame
    steps = {"resized_pixels": (wide, high), "original_pixels": (width, height), "per_999": (999, 999)}
    across, down = steps.get(frame, (1000, 1000))
    return Fraction(width, across), Fraction(height, down)


def assert_close(name: str, view: View, meant: tuple[int, int], read: tuple[int, int]) -> None:
    for was, is_, grain in zip(meant, read, grains(name, view), strict=True):
        if grain <= 1:
            assert is_ == was
        else:
            assert abs(is_ - was) <= Fraction(1, 2) + grain / 2


@pytest.mark.parametrize("name", CODECS)
def test_the_screens_of_the_table(name: str) -> None:
    codec = open_codec(name)
    for view in VIEWS:
        width, height = view.screen
        for point in itertools.product({0, 1, width // 3, width - 1}, {0, 1, height // 2, height - 1}):
            read = codec.parse(codec.format(Click(point), view), view)
            assert isinstance(read, Click) and read.point
            assert_close(name, view, point, read.point)


@settings(max_examples=400, deadline=None)
@given(st.data(), views(), st.sampled_from([*CODECS, *(f"plain@{frame}" for frame in FRAME_NAMES)]))
def test_any_screen_shown_in_any_size(data: st.DataObject, view: View, name: str) -> None:
    codec, (width, height) = open_codec(name), view.screen
    ends = [data.draw(st.tuples(coordinates(width), coordinates(height))) for _ in range(2)]
    view = View(view.canvas, ends[0])
    for action in (Click(ends[0]), Drag((ends[0], ends[1])), Swipe(ends[0], ends[1])):
        try:
            text = codec.format(action, view)
        except ActionError as error:
            assert error.kind == "unknown_action" and not isinstance(action, Click)
            continue
        read = codec.parse(text, view)
        assert type(read) is type(action) or (isinstance(action, Swipe) and isinstance(read, Drag))
        for meant, found in zip(points_of(action), points_of(read), strict=True):
            assert_close(name, view, meant, found)


def test_every_pixel_of_a_frame_no_coarser_than_the_screen_is_its_own() -> None:
    for side, shown in [(49, 49), (49, 50), (640, 644), (1000, 1000), (999, 999), (1366, 1372), (3840, 3840)]:
        view = View(Canvas((side, side), (shown, shown)), (0, 0))
        grid = Grid("resized_pixels", view)
        for at in range(side):
            assert grid.pixel(*grid.written((at, at))) == (at, at)
        if side == shown:
            assert grid.written((side - 1, 0)) == (
                side - 1,
                0,
            )  # a screen that is shown as it is: its own pixels


def test_999_and_1000_are_the_far_edge() -> None:
    screen = View(Canvas((480, 640), (480, 640)), (0, 0))
    read = {name: open_codec(name) for name in ("qwen3_computer_use", "qwen3_computer_use@per_999")}
    call = write_call("computer_use", {"action": "left_click", "coordinate": ["N", "N"]}).replace(
        '"N"', "{0}"
    )
    call = call.replace("{", "{{").replace("}", "}}").replace("{{0}}", "{0}")
    assert read["qwen3_computer_use"].parse(call.format(1000), screen) == Click((639, 479))
    assert read["qwen3_computer_use@per_999"].parse(call.format(999), screen) == Click((639, 479))
    assert read["qwen3_computer_use"].parse(call.format(500), screen) == Click((320, 240))
    with pytest.raises(ActionError) as caught:
        read["qwen3_computer_use@per_999"].parse(call.format(1000), screen)
    assert caught.value.kind == "outside"


@pytest.mark.parametrize("name", CODECS)
def test_what_can_be_said_is_read_again(name: str) -> None:
    codec, said = open_codec(name), 0
    for action in SAMPLES:
        try:
            text = codec.format(action, VIEW)
        except ActionError as error:
            assert error.kind == "unknown_action" and name.partition("@")[0] in str(error)
            continue
        said += 1
        read = codec.parse(f"<think>a thought of <action>click 1 1</action></think>\n{text}", VIEW)
        assert alike(name, action, read), (action, text, read)
    assert said >= 12


def alike(name: str, action: Action, read: Action) -> bool:
    """The same, but for amounts that a grammar does not say."""
    if type(action) is not type(read):
        if isinstance(action, Swipe):  # UI-TARS has one word for a finger's drag and a mouse's
            return name.startswith("uitars") and read == Drag((action.start, action.end))
        return name == "androidworld" and (action, read) == (SystemButton("enter"), Key(("enter",)))
    if isinstance(action, Wait) and isinstance(read, Wait):
        return read == action or CODECS[name].line.startswith(
            ("UI-TARS", "GUI-R1", "OSWorld", "Android", "Mini")
        )
    if isinstance(action, Swipe) and isinstance(read, Swipe):
        return (action.start, action.end) == (read.start, read.end)
    if not (isinstance(action, Scroll) and isinstance(read, Scroll)):
        return action == read
    ways = (
        [(n.dx > 0) - (n.dx < 0) for n in (action, read)],
        [(n.dy > 0) - (n.dy < 0) for n in (action, read)],
    )
    assert all(first == second for first, second in ways)
    same = (action.dx, action.dy) == (read.dx, read.dy)
    if name == "androidworld":  # a finger in the middle, whatever was tapped before
        return read.point == (VIEW.screen[0] // 2, VIEW.screen[1] // 2)
    return (same or name in (*SPELT_BY_DIRECTION, "miniwob")) and (read.point or (5, 5)) == (
        action.point or (5, 5)
    )


def test_plain_says_everything() -> None:
    codec = open_codec("plain")
    assert {type(action) for action in SAMPLES} == set(get_args(Action))
    for action in SAMPLES:
        assert codec.parse(codec.format(action, VIEW), VIEW) == action


@pytest.mark.parametrize("name", [name for name in CODECS if "mobile" not in name and name != "androidworld"])
def test_an_oracle_reaches_what_starts_at_the_pointer(name: str) -> None:
    """A drag from elsewhere: the move there comes first, on every screen, and then the drag itself."""
    codec = open_codec(name)
    for view in VIEWS[::5]:
        width, height = view.screen
        drag = Drag(((width - 3, height // 2), (width // 2, 1)))
        if name in ("miniwob", "gui_r1"):  # a drag is three actions there, or none
            with pytest.raises(ActionError):
                next_words(codec, drag, view)
            continue
        read = codec.parse(next_words(codec, drag, view), view)
        if isinstance(read, Move):
            view = View(view.canvas, read.point)
            read = codec.parse(next_words(codec, drag, view), view)
        assert isinstance(read, Drag)
        for meant, found in zip(drag.path, read.path, strict=True):
            assert_close(name, view, meant, found)


def test_a_scroll_where_the_pointer_is() -> None:
    for name in ("computer_13", "browsergym"):
        codec = open_codec(name)
        first = codec.parse(next_words(codec, Scroll(0, 300, (50, 60)), VIEW), VIEW)
        assert first == Move((50, 60))
        there = View(VIEW.canvas, (50, 60))
        assert codec.parse(next_words(codec, Scroll(0, 300, (50, 60)), there), there) == Scroll(0, 300)


@pytest.mark.parametrize("name", ["qwen2_5_mobile_use", "qwen3_mobile_use"])
def test_a_scroll_where_there_is_only_a_finger(name: str) -> None:
    codec = open_codec(name)
    for scroll in (Scroll(0, 200), Scroll(-100, 0, (300, 200)), Scroll(0, 9000, (3, 3))):
        read = codec.parse(next_words(codec, scroll, VIEW), VIEW)
        assert isinstance(read, Swipe)
        (x, y), (to_x, to_y) = read.start, read.end
        assert (x - to_x, y - to_y) == (scroll.dx, scroll.dy) or abs(scroll.dy) > 479
        assert (y > to_y) == (scroll.dy > 0)  # what lies below comes up


def test_what_nothing_says() -> None:
    with pytest.raises(ActionError, match="miniwob cannot say") as caught:
        next_words(open_codec("miniwob"), Scroll(100, 0), VIEW)
    assert caught.value.kind == "unknown_action"
