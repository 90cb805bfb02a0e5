"""Marks of actions on screens: where they were done, on the screenshot before; what many of them weigh."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from toy_episodes import play_toy, write_toy

from vlrl.envs.gui.actions import Answer, Click, Drag, Finish, Key, LongPress, Scroll, Swipe, TypeText, Wait
from vlrl.viewer.gestures import MAX_POINTS, read_gesture
from vlrl.viewer.pages.report import write_report
from vlrl.viewer.room import SizeBudget

DRAG = Drag(((10, 20), (300, 200)))


def gesture(action: Any, point: str = "", **info: Any) -> Any:
    return read_gesture({"gui_action": repr(action), "point": point, **info})


@pytest.mark.parametrize(
    ("action", "point", "kind", "words", "typed"),
    [
        (Click((3, 4)), "3,4", "click", "click", ""),
        (Click((3, 4), "right"), "3,4", "click", "right click", ""),
        (Click((3, 4), count=2, modifiers=("ctrl", "shift")), "3,4", "click", "ctrl+shift+double click", ""),
        (DRAG, "10,20 300,200", "path", "drag", ""),
        (Swipe((5, 5), (5, 90)), "5,5 5,90", "path", "swipe", ""),
        (Scroll(0, 300), "7,8", "scroll", "scroll down 300", ""),
        (Scroll(-200, 0), "7,8", "scroll", "scroll left 200", ""),
        (LongPress((3, 4)), "3,4", "press", "long press", ""),
        (TypeText("tea (x=1)\n"), "", "", "type", "tea (x=1)\n"),
        (Key(("ctrl", "s")), "", "", "press", "ctrl+s"),
        (Answer("42"), "", "", "answer", "42"),
        (Finish(False), "", "", "says that it cannot be done", ""),
        (Wait(), "", "", "wait", ""),
    ],
)
def test_an_action_is_read(action: Any, point: str, kind: str, words: str, typed: str) -> None:
    found = gesture(action, point)
    assert (found.kind, found.words, found.typed) == (kind, words, typed)
    # A pixel's mark is on its middle.
    assert found.points == [(int(x) + 0.5, int(y) + 0.5) for x, y in re.findall(r"(\d+),(\d+)", point)]


def test_arrows_point_where_it_went() -> None:
    line, head = gesture(DRAG, "10,20 300,200").arrow(8)
    assert line.startswith("10.5,20.5 ")
    assert head.startswith("300.5,200.5 ")
    line, head = gesture(Scroll(0, -300), "100,90").arrow(8)
    assert (line, head.split()[0]) == ("100.5,90.5 100.5,62.5", "100.5,50.5")
    assert gesture(Drag(((5, 5), (5, 5))), "5,5 5,5").arrow(8)  # nowhere: drawn all the same


@pytest.mark.parametrize(
    "info",
    [
        {},
        {"gui_action": "", "point": ""},
        {"gui_action": "__import__('os').getcwd()"},
        {"gui_action": "Click(point=(1, 2), button=open('x'))"},
        {"gui_action": "[" * 5000},
        {"gui_action": "TypeText(text='cut o"},
        {"point": "here"},
        {"point": 5},
    ],
)
def test_what_tells_of_no_gesture_has_none(info: dict[str, Any]) -> None:
    assert read_gesture(info) is None


def test_a_strangers_fields_are_taken_for_what_they_are() -> None:
    odd = "Click(count='x', modifiers=3, keys=4, dx=1e400, text=(1,), point=[[]])"
    assert read_gesture({"gui_action": odd, "point": "1,2", "widget_box": "a,b"}) is not None
    assert read_gesture({"gui_action": "Scroll(dx='a', dy=[])", "point": "1,2"}).words == "scroll down 0"
    many = " ".join(f"{i},{i}" for i in range(5000))
    points = read_gesture({"point": many}).points
    assert len(points) <= MAX_POINTS + 1
    assert (points[0], points[-1]) == ((0.5, 0.5), (4999.5, 4999.5))


class Shots(HTMLParser):
    """Every frame of the page: the tags in its image, by kind, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.frames: list[list[tuple[str, dict[str, str]]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        values = {key: value or "" for key, value in attrs}
        if tag == "li" and values.get("class", "").startswith("frame"):
            self.frames.append([])
        if self.frames:
            self.frames[-1].append((tag, values))


def tags(frame: list[tuple[str, dict[str, str]]], name: str, kind: str) -> list[dict[str, str]]:
    return [attrs for tag, attrs in frame if tag == name and attrs.get("class") == kind]


def test_the_report_marks_the_screenshot_before_the_action(tmp_path: Path, tiny_model: Path) -> None:
    """The model saw 280×196 pixels of a screen of 320×240: marks are in the screen's pixels."""

    def say(env: Any, turn: int) -> str:
        return env.codec.format([Click((30, 202), count=2), TypeText("tea"), DRAG][turn], env.view)

    groups = play_toy(tiny_model, say, num_rows=1, tasks=[{"kind": "form"}], max_steps=3, widgets=True)
    path = write_toy(tmp_path, "after", tiny_model, groups)
    record = json.loads(path.read_text().splitlines()[0])
    assert [turn["info"]["point"] for turn in record["turns"]][:2] == ["30,202", ""]
    page = Shots(write_report(tmp_path).read_text())
    first, second, third, end = page.frames
    (image,) = (attrs for tag, attrs in first if tag == "svg")
    assert image["viewbox"] == "0 0 320 240"
    rings = [c for c in tags(first, "circle", "ink")]
    assert [(ring["cx"], ring["cy"]) for ring in rings] == [("30.5", "202.5")] * 2
    (box,) = tags(first, "rect", "widget")
    assert [box[key] for key in ("x", "y", "width", "height")] == ["20", "190", "200", "24"]
    assert not tags(second, "circle", "ink")
    (line,) = tags(third, "polyline", "ink")
    start, stop = record["turns"][2]["info"]["point"].split()
    assert line["points"].startswith(",".join(str(int(v) + 0.5) for v in start.split(",")))
    assert np.hypot(*(np.array([int(v) for v in stop.split(",")]) - [300, 200])) <= 1.5
    assert not [tag for tag, _ in end if tag == "circle"]
    assert len(page.frames) == 4
    assert [tag for tag, _ in end].count("img") == 1  # what the last action led to


def test_a_screen_of_one_turn_is_a_strip_too(tmp_path: Path, tiny_model: Path) -> None:
    groups = play_toy(tiny_model, lambda env, turn: env.oracle(), num_rows=1, tasks=[{"kind": "click"}])
    write_toy(tmp_path, "after", tiny_model, groups)
    page = Shots(write_report(tmp_path).read_text())
    assert len(page.frames) == 1
    assert tags(page.frames[0], "circle", "ink")


@pytest.mark.slow
def test_two_hundred_episodes_are_one_file_to_send(tmp_path: Path, tiny_model: Path) -> None:
    """Screens full of detail, too many to be shown as they are: under 20 MB."""
    groups = play_toy(tiny_model, lambda env, turn: env.oracle(), num_rows=1, tasks=[{"kind": "form"}])
    path = write_toy(tmp_path, "after", tiny_model, groups)
    record = json.loads(path.read_text().splitlines()[0])
    rng = np.random.default_rng(0)
    for number in range(1):
        detail = np.kron(rng.integers(0, 255, (60, 80, 3), np.uint8), np.ones((8, 8, 1), np.uint8))
        Image.fromarray(detail).save(tmp_path / "media" / f"{number}.png", compress_level=1)
    medium = record["media"][0] | {"width": 640, "height": 480, "original_size": [480, 640]}
    record["media"] = [medium | {"path": f"media/{number}.png"} for number in range(1)]
    record["turns"] = [record["turns"][0] | {"media": [number]} for number in range(1)]
    record["end"] = {"seen": "", "media": [0]}
    lines = [json.dumps(record | {"sample_id": f"s{number}"}) for number in range(200)]
    path.write_text("\n".join(lines))
    (tmp_path / "config.yaml").write_text("logging: {num_report_rollouts: 200}")
    report = write_report(tmp_path)
    assert len(Shots(report.read_text()).frames) == 200 * 2
    assert 4e6 < report.stat().st_size < 20e6


def test_images_share_what_there_is_and_small_ones_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 255, (480, 640, 3), np.uint8)
    plain = np.full((480, 640, 3), 200, np.uint8)
    room = SizeBudget(20, image_bytes=400_000)
    sizes = [len(room.image(noise)) for _ in range(20)]
    assert sum(sizes) <= 400_000
    room = SizeBudget(20, image_bytes=400_000)
    plains = [len(room.image(plain)) for _ in range(19)]
    assert len(room.image(noise)) > min(sizes)  # what the others left
    assert max(plains) < 3000
    small = SizeBudget(1).image(noise[:100, :100])
    assert small.startswith("data:image/png")


def test_several_actions_of_a_turn_are_one_path_and_all_are_named() -> None:
    done = (
        "Click(point=(3, 4), button='left', count=2, modifiers=()); TypeText(text='ab'); Key(keys=('enter',))"
    )
    gesture = read_gesture({"point": "3,4 9,9", "gui_action": done})
    assert gesture is not None and gesture.kind == "path" and gesture.points == [(3.5, 4.5), (9.5, 9.5)]
    assert gesture.words == "double click, then type, then press" and gesture.typed == "ab enter"
