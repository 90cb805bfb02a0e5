"""Images of pages: everything at its place at every scale, and never of what is no more."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.web.folder import WebFolder
from vlrl.envs.gui.web.miniwob.pages import MiniWob

Open = Callable[..., WebFolder]


@pytest.mark.parametrize("scale", [0.5, 1.0, 1.5, 2.0, 3.0])
def test_an_image_shows_what_is_where_at_its_scale(open_page: Open, scale: float) -> None:
    web = open_page(
        """<style>
          div { position: absolute; left: 200px; top: 100px; width: 40px; height: 20px; background: red }
        </style><div onclick="document.body.dataset.done='yes'"></div>""",
        scale=scale,
    )
    pixels = web.show().pixels
    assert pixels.shape == (240 * scale, 320 * scale, 3)
    rows, columns = np.nonzero((pixels == (255, 0, 0)).all(2))
    box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
    assert box == [side * scale for side in (200, 100, 240, 120)]
    web.perform(Click((int(columns.mean()), int(rows.mean()))))
    assert web.page.evaluate("document.body.dataset.done") == "yes"


def test_an_image_shows_what_the_page_has_become(open_page: Open) -> None:
    """An unchanged page is not read again; whatever changes one has to be seen."""
    web = open_page("<canvas width=100 height=100></canvas><p style='margin-top:400px'>below")
    first = web.show().pixels
    assert np.array_equal(first, web.show().pixels)
    seen = {first.tobytes()}
    for change in (
        "document.body.style.background = 'lime'",
        "document.querySelector('canvas').getContext('2d').fillRect(0, 0, 9, 9)",
        "document.querySelector('canvas').animate([{rotate: '90deg'}], {duration: 9, fill: 'forwards'})",
        "scrollTo(0, 50)",
    ):
        web.page.evaluate(f"{change}; 0")
        seen.add(web.show().pixels.tobytes())
    assert len(seen) == 5
    shown = web.show().pixels
    shown[:] = 0  # whoever is given pixels may write to them
    assert web.show().pixels.any()


@pytest.mark.parametrize("scale", [1, 3])
def test_miniwob_s_image_is_the_task_and_nothing_else(scale: int) -> None:
    world = MiniWob(scale=scale)
    pixels = world.reset({"name": "click-button"}, 0).pixels
    assert pixels.shape == (210 * scale, 160 * scale, 3)
    goal = (pixels == (255, 255, 0)).all(2)
    assert goal[0].all()
    assert goal[:, -1].sum() == 50 * scale
    assert (pixels[-1] == 255).all()
    world.close()
