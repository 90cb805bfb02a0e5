"""The accessibility tree of pages: what it says can be seen is what the image shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from vlrl.envs.gui.grounding import GuiGrounding, nameable
from vlrl.envs.gui.web.folder import WebFolder
from vlrl.errors import DataError

Open = Callable[..., WebFolder]


def test_what_scrolls_away_or_ends_outside_the_image_is_not_seen_whole(open_page: Open) -> None:
    rows = "".join(f"<button>row {number}</button>" for number in range(6))
    web = open_page(
        f"""<style>button {{ display: block; height: 30px; width: 90px; padding: 0; margin: 0; border: 0 }}
        #list {{ height: 75px; width: 120px; overflow: auto; border: 5px solid }} body {{ margin: 0 }}
        #free {{ position: absolute; left: 200px; top: 90px }}
        #low {{ position: absolute; left: 200px; top: 225px }}</style>
        <div id=list>{rows}<button id=free>free</button></div>
        <select size=2><option>a<option>b<option>c<option>d</select><button id=low>low</button>"""
    )
    states = {e.name: e.states for e in web.elements()}
    assert [states[f"row {number}"] - {"covered"} for number in range(4)] == [
        set(),
        set(),
        {"clipped"},
        {"hidden"},
    ]
    assert states["free"] == set(), "placed in the page, not in the list"
    assert states["low"] == {"clipped"}
    assert states["a"] == set()
    assert "hidden" in states["d"]
    named = {element.name for element, _ in nameable(web.elements(), web.size)}
    assert named == {"row 0", "row 1", "free", "a", "b"}


def test_a_text_with_the_hand_pointer_can_be_pressed(open_page: Open) -> None:
    web = open_page(
        """<style>.hand { cursor: pointer }</style><p>plain <span class=hand>go <b>on</b></span></p>
        <div class=hand>open</div><div class=hand><span>within</span></div>"""
    )
    roles = {e.name: e.role for e in web.elements()}
    assert (roles["go on"], roles["open"], roles["within"]) == ("link", "button", "text")


def test_screens_of_tasks_without_an_oracle_are_reached_by_clicks() -> None:
    """Most of MiniWoB++ has no oracle."""
    rows = GuiGrounding("gui/miniwob", {"tasks": "click-shades"}, num_rows=3)
    named = [rows[number]["metadata"]["widget_name"] for number in range(3)]
    assert set(named) <= {"Submit", "START"}, "START covers a page whose episode has ended"


def test_where_nothing_has_a_name_the_error_says_what_there_is() -> None:
    rows = GuiGrounding("gui/miniwob", {"tasks": "hot-cold"}, max_actions=0)
    with pytest.raises(DataError, match=r"gui/miniwob has .*text.*\. Use gui/emu"):
        rows[0]
