"""A screen used in the browser: what the hand does is the text that a model would write."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser_page import BrowserPage
from toy_desktop import ToyDesktop, ToyEnv
from toy_episodes import TOY

from vlrl.env_play.demonstrations import FILE
from vlrl.env_play.replay import replay_all
from vlrl.env_play.server import PlayServer
from vlrl.envs.gui.env import GuiEnv
from vlrl.errors import DataError


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Any]:
    """`play(kind, option=…)`: a server of the toy desktop, answering."""
    opened: list[tuple[PlayServer, threading.Thread]] = []

    def start(kind: str = "form", name: str = TOY, **options: Any) -> PlayServer:
        task = {"kind": kind} if name == TOY else {}
        server = PlayServer(name, options, task, seed=3, out=tmp_path / "out")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        opened.append((server, thread))
        return server

    yield start
    for server, thread in opened:
        server.shutdown()
        thread.join()
        server.__exit__()


def done(server: PlayServer, **asked: Any) -> str:
    """The text that a gesture becomes."""
    return server.answer("do", asked)["turns"][-1]["action"]


def test_what_is_done_to_the_image_is_said_in_the_environments_grammar(play: Any) -> None:
    server = play(max_steps=20, end="finish")
    assert server.answer("view", {})["screen"] == {"form": "desktop"}
    for asked, text in (
        ({"kind": "click", "x": 30, "y": 200, "count": 2}, "double_click 30 200"),
        ({"kind": "click", "x": 30, "y": 200, "button": "right"}, "right_click 30 200"),
        ({"kind": "drag", "path": [[30, 150], [90, 151], [290, 150]]}, "drag"),
        ({"kind": "scroll", "x": 5, "y": 6, "dy": 300}, "scroll 5 6 0 300"),
        ({"kind": "type", "text": "tea & <b>"}, "type tea & <b>"),
        ({"kind": "key", "keys": ["ctrl", "s"]}, "key ctrl+s"),
        ({"kind": "wait"}, "wait"),
        ({"kind": "finish"}, "done"),
    ):
        assert done(server, **asked).startswith(f"<action>{text}")
    view = server.answer("view", {})
    assert (view["is_over"], [turn["invalid"] for turn in view["turns"]]) == (True, [False] * 8)


def test_coordinates_are_those_of_the_codecs_frame(play: Any) -> None:
    assert done(play(codec="plain@per_1000"), kind="click", x=160, y=120) == "<action>click 502 502</action>"
    assert done(play(shown_size=[640, 480]), kind="click", x=160, y=120) == "<action>click 321 241</action>"


def test_a_phone_is_swiped_and_held(play: Any) -> None:
    server = play(codec="qwen3_mobile_use", form="mobile")
    assert server.answer("view", {})["screen"] == {"form": "mobile"}
    for asked, word in (
        ({"kind": "swipe", "path": [[160, 200], [160, 40]]}, "swipe"),
        ({"kind": "long_press", "x": 10, "y": 20}, "long_press"),
        ({"kind": "system_button", "name": "back"}, "Back"),
    ):
        assert f'"{word}"' in done(server, **asked)
    with pytest.raises(DataError, match="cannot say"):
        server.answer("do", {"kind": "click", "x": 1, "y": 2, "button": "right"})


def test_where_a_drag_starts_at_the_pointer_it_is_moved_there_first(play: Any) -> None:
    server = play("drag", codec="qwen3_computer_use")
    view = server.answer("do", {"kind": "drag", "path": [[30, 150], [200, 150], [290, 150]]})
    turns = view["turns"]
    assert ["mouse_move" in turns[0]["action"], "left_click_drag" in turns[1]["action"]] == [True, True]
    assert view["success"] is True
    assert [turn["invalid"] for turn in turns] == [False, False]


class Bare(ToyDesktop):
    """A machine of which no state can be kept, and nobody knows what is right."""

    oracle = snapshot = restore = property()  # type: ignore[assignment]


class BareEnv(GuiEnv):
    def __init__(self) -> None:
        super().__init__(Bare())


def test_what_a_machine_cannot_do_is_not_offered(play: Any) -> None:
    server = play(name=f"{__file__}:BareEnv")
    view = server.answer("do", {"kind": "click", "x": 1, "y": 2})
    assert (view["can_undo"], view["can_hint"], view["tag"]) == (False, False, "action")


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"kind": "dance"}, "not a gesture"),
        ({"kind": "click", "x": 1.5, "y": 2}, "x=1.5 is not a whole number"),
        ({"kind": "click", "y": 2}, "x=None"),
        ({"kind": "click", "x": True, "y": 2}, "x=True"),
        ({"kind": "click", "x": 1, "y": 2, "button": "fourth"}, "none of left"),
        ({"kind": "click", "x": 1, "y": 2, "modifiers": ["hyper"]}, "hyper"),
        ({"kind": "drag", "path": [[1, 2]]}, "from 2 to 200 places"),
        ({"kind": "drag", "path": "1,2"}, "is not a list"),
        ({"kind": "key", "keys": ["ctrl", "no key"]}, "are not keys"),
        ({"kind": "system_button", "name": "volume"}, "volume"),
        ({"kind": "click", "x": 9999, "y": 2}, "cannot say it"),
    ],
)
def test_what_is_no_action_changes_nothing(play: Any, asked: dict[str, Any], words: str) -> None:
    server = play()
    with pytest.raises(DataError, match=words):
        server.answer("do", asked)
    assert server.answer("view", {})["turns"] == []


class Mute(ToyEnv):
    """Its grammar forgets which button was meant."""

    def __init__(self, **rules: Any) -> None:
        super().__init__(**rules)
        speak = self.codec.format
        self.codec.format = lambda action, view: speak(action, view).replace("right_", "")  # type: ignore[method-assign]


def test_what_the_grammar_would_lose_is_refused(play: Any) -> None:
    server = play(name=f"{__file__}:Mute")
    with pytest.raises(DataError, match="cannot say button='right'"):
        server.answer("do", {"kind": "click", "x": 1, "y": 2, "button": "right"})


def test_no_screen_takes_no_gestures(play: Any) -> None:
    server = play(name="visual/mazes")
    assert server.answer("view", {})["screen"] is None
    with pytest.raises(DataError, match="not a screen"):
        server.answer("do", {"kind": "wait"})


def test_a_person_uses_it_in_a_browser(play: Any, tmp_path: Path) -> None:
    """Mouse and keys alone do it: click, type, drag, wheel, chord, double click; then the demonstration."""
    server = play(max_steps=20)
    (tmp_path / "profile").mkdir()
    with BrowserPage(server.url, tmp_path / "profile") as page:
        page.until("!!document.querySelector('img.screen')?.complete")
        word = page.value("document.getElementById('goal').textContent").split()[2]
        box = json.loads(page.value("JSON.stringify(stage.image.getBoundingClientRect())"))
        scale = box["width"] / 320

        def at(x: float, y: float) -> tuple[float, float]:
            return box["x"] + (x + 0.5) * scale, box["y"] + (y + 0.5) * scale

        def turns(count: int) -> str:
            page.until(f"view.turns.length === {count}")
            return str(page.value("view.turns.at(-1).action"))

        page.click(*at(60, 100), button="right")
        assert turns(1) == "<action>right_click 60 100</action>"
        page.click(*at(300, 100), count=2)
        assert turns(2) == "<action>double_click 300 100</action>"
        page.mouse("mousePressed", *at(30, 150), button="left", clickCount=1)
        for x in (60, 120, 200):
            page.mouse("mouseMoved", *at(x, 150), button="left", buttons=1)
        page.mouse("mouseReleased", *at(200, 150), button="left", clickCount=1)
        assert turns(3).startswith("<action>drag 30 150 ")
        assert " 200 150" in turns(3)
        page.mouse("mouseWheel", *at(160, 120), deltaX=0, deltaY=240)
        assert turns(4) == "<action>scroll 160 120 0 240</action>"
        page.click(*at(100, 200))
        assert turns(5) == "<action>click 100 200</action>"
        for letter in word:
            page.key(letter, text=letter)
        assert turns(6) == f"<action>type {word}</action>"
        page.key("s", modifiers=2)
        assert turns(7) == "<action>key ctrl+s</action>"
        page.key("Enter", text="\r")
        assert turns(8) == "<action>key enter</action>"
        page.click(*at(266, 202))
        assert turns(9) == "<action>click 266 202</action>"
        assert page.value("[view.is_over, view.success]") == [True, True]
        page.value("document.getElementById('save').click()")
        page.until("document.getElementById('notice').textContent.startsWith('saved')")
        assert page.errors == []
    row = json.loads((tmp_path / "out" / FILE).read_text())
    assert (row["target"], row["metadata"]["num_turns"]) == ("<action>click 266 202</action>", 9)
    assert replay_all(tmp_path / "out")["ok"]
