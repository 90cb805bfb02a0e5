"""How a page is shown and waited for, and the scripts that see to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from vlrl.envs.gui.screen import Form

EPOCH_MS = 1_767_268_800_000
"""What a page takes for the present when it is opened: noon of the first of January 2026, UTC."""

# A navigation that the gate aborts while a page loads leaves it loading for ever; this one never begins. No
# script of a page comes before it or can take it away.
_STAY = """;(() => {
  const prevent = Event.prototype.preventDefault, stop = Event.prototype.stopImmediatePropagation;
  window.navigation.addEventListener("navigate", (event) => {
    if (event.hashChange || !event.cancelable) return;
    prevent.call(event);
    stop.call(event);
  }, true);
  window.close = window.print = () => {};
  HTMLFormElement.prototype.submit = () => {};
})()"""


@dataclass(frozen=True, slots=True)
class Look:
    """How a page is shown and waited for.

    Attributes:
        size: (width, height) in CSS pixels.
        scale: pixels of the image to a CSS pixel.
        form: a mouse or fingers.
        step_ms: of the page's own time that passes with every action.
        settle_ms: most of it, while something on the page moves or loads.
        limit_s: of real time for an action or a reset.
        shown: (width, height) of the part at the top left that the image has; None for all.
        is_alone: no page or frame may go to another address, or load itself again; no scroll bars are shown.
    """

    size: tuple[int, int]
    scale: float = 1.0
    form: Form = "desktop"
    step_ms: int = 48
    settle_ms: int = 640
    limit_s: float = 30.0
    shown: tuple[int, int] | None = None
    is_alone: bool = False

    @property
    def image_size(self) -> tuple[int, int]:
        """(width, height) of the image in pixels."""
        width, height = self.shown or self.size
        return int(width * self.scale), int(height * self.scale)


@cache
def script(name: str) -> str:
    """A script of this folder."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def set_up_commands(look: Look, seed: int) -> Sequence[tuple[str, dict[str, Any]]]:
    """(method, parameters) of the DevTools Protocol that a page is sent before it loads."""
    (width, height), (shown_width, shown_height) = look.size, look.shown or look.size
    page = {"width": width, "height": height, "deviceScaleFactor": look.scale}
    screen = {"screenWidth": width, "screenHeight": height, "dontSetVisibleSize": True}
    touch = {"enabled": look.form == "mobile", "maxTouchPoints": 1}
    calm = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    first = f"({script('clock.js')})({EPOCH_MS},{seed % 2**32});({script('pickers.js')})();"
    first += f"({script('select.js')})({shown_height})"
    first += _STAY if look.is_alone else ""
    return [
        ("Page.enable", {}),
        ("Network.enable", {"maxTotalBufferSize": 0}),
        ("Fetch.enable", {"patterns": [{"urlPattern": "*"}]}),
        ("Emulation.setDeviceMetricsOverride", {**page, **screen, "mobile": look.form == "mobile"}),
        ("Emulation.setVisibleSize", {"width": shown_width, "height": shown_height}),
        ("Emulation.setScrollbarsHidden", {"hidden": look.is_alone}),
        ("Emulation.setTouchEmulationEnabled", touch if touch["enabled"] else {"enabled": False}),
        ("Emulation.setFocusEmulationEnabled", {"enabled": True}),
        ("Emulation.setEmulatedMedia", calm),
        ("Input.setInterceptDrags", {"enabled": True}),
        ("Page.addScriptToEvaluateOnNewDocument", {"source": first, "runImmediately": True}),
        ("Runtime.runIfWaitingForDebugger", {}),
    ]
