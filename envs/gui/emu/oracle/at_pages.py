"""How an oracle gets along with the dense web: it waits, scrolls on, and puts away what lies over pages."""

from __future__ import annotations

from vlrl.envs.gui.actions import Action, Wait
from vlrl.envs.gui.emu.apps.parts.browsing import Browser
from vlrl.envs.gui.emu.drawing.paint import Layer
from vlrl.envs.gui.emu.oracle.locator import Locator, turn
from vlrl.envs.gui.emu.sites.dense.images import Coming
from vlrl.envs.gui.emu.sites.dense.loading import SKELETON
from vlrl.envs.gui.emu.sites.dense.sheet import Overlay
from vlrl.envs.gui.emu.widgets.base import Placed, cut
from vlrl.envs.gui.emu.windows import wm

A_WHILE = Wait(1000)


def browser_of(locator: Locator) -> Browser | None:
    """The browser, if it is in front and its pages are dense."""
    if locator.world.settings.get("pages") != "dense":
        return None
    front = wm.front(locator.world)
    return front.state if front is not None and isinstance(front.state, Browser) else None


def is_loading(locator: Locator) -> bool:
    """Whether the page in front has not come yet."""
    browser = browser_of(locator)
    return browser is not None and bool(browser.shown.pending or browser.shown.stage == SKELETON)


def way_out(layer: Layer, placed: Placed) -> str:
    """The id of the button that puts away what lies over a widget; "" if nothing does."""
    over = _overlay(layer)
    if over is None:
        return ""
    overlay, index = over
    seen = cut(placed.seen, overlay.box)
    is_below = layer.view.placed.index(placed) < index
    if not is_below or seen[0] >= seen[2] or seen[1] >= seen[3]:
        return ""
    assert isinstance(overlay.widget, Overlay)
    return overlay.widget.way_out


def awaited(locator: Locator, id: str) -> Action | str | None:
    """What makes a widget come that a page does not have yet: an action, or the id of a button."""
    browser, front = browser_of(locator), wm.front(locator.world)
    layer = locator.scene.layer(locator.world, front.number) if front is not None else None
    if browser is None or layer is None:
        return None
    over = _overlay(layer)
    if over is not None:
        assert isinstance(over[0].widget, Overlay)
        return over[0].widget.way_out
    if browser.shown.more_ms is not None or id.startswith("news."):
        return A_WHILE
    page = f"page:{browser.shown.address}"
    coming = next((one for one in layer.view.placed if isinstance(one.widget, Coming)), None)
    if coming is None:
        return None
    scroller = layer.view.scrollers[page]
    if coming.seen[1] < coming.seen[3]:
        return A_WHILE
    return turn(locator, layer, scroller, coming.box[3] - scroller.box[3] + (coming.box[3] - coming.box[1]))


def _overlay(layer: Layer) -> tuple[Placed, int] | None:
    """What lies over a page, the dimmed page included, and its place in the order of drawing."""
    found = [(n, one) for n, one in enumerate(layer.view.placed) if one.widget.covers]
    if not found:
        return None
    (first, behind), (_, overlay) = found[0], found[-1]
    return overlay._replace(box=behind.box), first
