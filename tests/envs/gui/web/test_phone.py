"""Pages on a phone: what a finger does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from vlrl.envs.gui.actions import Action, Click, Drag, Swipe
from vlrl.envs.gui.web.folder import WebFolder

Open = Callable[..., WebFolder]
WIDTH = "<meta name=viewport content='width=device-width'>"


@pytest.mark.parametrize("action", [Drag(((160, 200), (160, 80))), Swipe((160, 200), (160, 80))])
def test_a_drag_of_a_finger_scrolls(open_page: Open, action: Action) -> None:
    """UI-TARS has no other word for a swipe."""
    web = open_page(WIDTH + "<body style='margin:0;height:2000px'>", form="mobile")
    screen = web.perform(action)
    assert 90 < web.page.evaluate("scrollY") <= 120
    assert screen.pointer == (160, 80)


def test_a_finger_goes_all_of_a_way(open_page: Open) -> None:
    web = open_page(
        WIDTH
        + """<body style="margin:0"><div id=d style="height:240px;touch-action:none"></div><script>
        const way = [];
        for (const name of ["touchstart", "touchmove", "touchend"])
          d.addEventListener(name, ({type, touches: [t]}) =>
            way.push([type, t?.clientX | 0, t?.clientY | 0]));
        </script>""",
        form="mobile",
    )
    web.perform(Drag(((20, 20), (200, 20), (200, 200))))
    way = web.page.evaluate("way")
    assert way[0] == ["touchstart", 20, 20]
    assert ["touchmove", 200, 20] in way and ["touchmove", 200, 200] in way
    assert way[-1][0] == "touchend"


@pytest.mark.parametrize("head", [WIDTH, "", "<meta name=viewport content='width=500'>"])
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_finger_touches_what_is_drawn_under_it(open_page: Open, head: str, scale: float) -> None:
    """A page that names no width is laid out 980 wide and drawn smaller."""
    button = "position:absolute;left:90px;top:110px;width:120px;height:80px;border:0;background:#f00"
    web = open_page(
        f"{head}<body style='margin:0;background:#fff'><button style='{button}' "
        "onclick='document.body.dataset.done = \"yes\"'></button>",
        form="mobile",
        scale=scale,
    )
    rows, columns = np.nonzero((web.show().pixels == (255, 0, 0)).all(axis=2))
    drawn = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
    box = next(element.box for element in web.elements() if element.role == "button")
    assert np.abs(np.subtract(drawn, box)).max() <= 1
    web.perform(Click((web.size[0] - 5, web.size[1] - 5)))
    assert not web.verdict().success
    web.perform(Click((int(drawn[0]) + 3, int(drawn[1]) + 3)))
    assert web.verdict().success
