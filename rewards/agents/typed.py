"""Typed actions of the GUI environments in the common words of a sample's answer (`vlrl.parsing.actions`)."""

from __future__ import annotations

from vlrl.coordinates import Canvas, Point
from vlrl.envs.gui import actions as gui
from vlrl.envs.gui.actions import NOTCH_PX, Pixel
from vlrl.envs.gui.codecs.codec import ActionError, View
from vlrl.envs.gui.codecs.grammar.directions import direction_of
from vlrl.envs.gui.codecs.grammar.tolerance import Tolerance
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.parsing.actions import CLICKS, Action
from vlrl.types import Media

_PARTS = 1024
"""Parts of a pixel's side; a power of two, so that whole pixels stay whole."""
_NOWHERE: Pixel = (-1, -1)
"""The pointer's place, which a dataset's image does not show; no text can name it."""


def read_by(
    codec: str, text: str, canvas: Canvas | Media, tolerance: Tolerance = "published"
) -> Action | None:
    """The action of a model's text in common words; None if it is none or has none.

    Args:
        codec: its name.
        text: of the model, untrusted.
        canvas: the image it speaks of.
        tolerance: how much of its form is forgiven; see docs/gui_actions.md.

    Returns:
        An action with places in the image's original pixels, to a 1024th of one.

    Raises:
        ConfigError: for an unknown codec.
    """
    seen = Canvas.of(canvas) if isinstance(canvas, Media) else canvas
    reader = open_codec(codec, tolerance)
    try:
        action = reader.parse(text, _FineView(seen, _NOWHERE))
    except ActionError:  # what the model wrote is right or wrong
        return None
    words = _words(action)
    return None if words is None else Action(words[0], _places(action), words[1])


class _FineView(View):
    """What the model saw, its pixels cut into parts: a codec reads places to whole pixels."""

    __slots__ = ()

    @property
    def screen(self) -> tuple[int, int]:
        """(width, height) of the screen in parts of pixels."""
        height, width = self.canvas.original_size
        return width * _PARTS, height * _PARTS


def _words(action: gui.Action) -> tuple[str, dict[str, str]] | None:
    """(kind, arguments); None for an action that no sample's answer is, such as a click with a key held."""
    match action:
        case gui.Click(button=button, count=count, modifiers=()):
            kind = CLICKS.get((button, str(count)))
            return None if kind is None else (kind, {})
        case gui.Drag(button="left", modifiers=()):
            return "drag", {}
        case gui.Move():
            return "move", {}
        case gui.Swipe():
            return "swipe", {}
        case gui.LongPress(duration_ms=duration):
            return "long_press", {"seconds": f"{duration / 1000:g}"}
        case gui.Scroll(dx=dx, dy=dy):
            way, amount = direction_of(action), -dy if dy else dx
            return "scroll", {"amount": f"{amount / NOTCH_PX:g}", **({"direction": way} if way else {})}
        case gui.TypeText(text=text):
            return "type", {"text": text.strip()}
        case gui.Key(keys=keys):
            return "key", {"keys": " ".join(keys)}
        case gui.Wait(duration_ms=duration):
            return "wait", {"seconds": f"{duration / 1000:g}"}
        case gui.OpenApp(name=name):
            return "open_app", {"text": name.strip()}
        case gui.Answer(text=text):
            return "answer", {"text": text.strip()}
        case gui.Finish(success=success):
            return "finish", {"status": "success" if success else "failure"}
        case gui.SystemButton(name=name):
            return name, {}
    return None


def _places(action: gui.Action) -> dict[str, Point]:
    match action:
        case gui.Drag(path=path):
            ends = {"point": path[0], "end": path[-1]}
        case gui.Swipe(start=start, end=end):
            ends = {"point": start, "end": end}
        case _:
            ends = {"point": getattr(action, "point", None) or _NOWHERE}
    return {name: Point(x / _PARTS, y / _PARTS) for name, (x, y) in ends.items() if (x, y) != _NOWHERE}
