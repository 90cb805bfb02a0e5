"""Slides: a presentation, its slides one by one, and a show of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

from vlrl.envs.gui.emu import limits
from vlrl.envs.gui.emu.app import App, System, register
from vlrl.envs.gui.emu.apps.documents.deck import Deck, Slide, num_chars
from vlrl.envs.gui.emu.apps.documents.slides_window import build
from vlrl.envs.gui.emu.apps.parts import documents
from vlrl.envs.gui.emu.apps.parts.documents import Document
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Drop, Event, KeyPress

MOST_SLIDES, MOST_CHARS = 40, 30_000
UNDO_STEPS = 20
EMPTY = Deck()
SHOW_KEYS = {
    "right": 1,
    "down": 1,
    "space": 1,
    "page_down": 1,
    "enter": 1,
    "left": -1,
    "up": -1,
    "page_up": -1,
}


class Before(NamedTuple):
    """The slides before a change to their number or order."""

    slides: tuple[Slide, ...]
    keys: tuple[int, ...]
    chosen: int
    design: str


@dataclass(frozen=True)
class Slides(Document):
    """What is worked on.

    Attributes:
        slides: as they are now.
        keys: a number for each slide, which it keeps wherever it is moved.
        chosen: key of the one that is worked on.
        before: what there was before slides were added, deleted or moved, the last one last.
        is_shown: whether the slides are presented.
    """

    saved: Deck = EMPTY
    slides: tuple[Slide, ...] = (Slide(),)
    keys: tuple[int, ...] = (0,)
    design: str = "plain"
    chosen: int = 0
    before: tuple[Before, ...] = ()
    is_shown: bool = False
    suggested = ("Slides", ".odp")

    @classmethod
    def parsed(cls, stored: Any) -> Deck | None:
        """The slides of a file."""
        return stored if isinstance(stored, Deck) else None

    @property
    def content(self) -> Deck:
        """The slides and their design."""
        return Deck(self.slides, self.design)

    def holding(self, content: Deck) -> Self:
        """State with other slides, the first one chosen."""
        keys = tuple(range(len(content.slides)))
        return replace(self, slides=content.slides, keys=keys, design=content.design, chosen=0)

    @property
    def at(self) -> int:
        """Place of the chosen slide."""
        return self.keys.index(self.chosen)

    @property
    def slide(self) -> Slide:
        """The chosen one."""
        return self.slides[self.at]


def handle(state: Slides, event: Event, system: System) -> Slides:
    """Texts, slides, the show; the rest is about files."""
    match event:
        case Change("slide"):
            return replace(state, chosen=event.value)
        case Change("design", str(design)):
            return replace(state, design=design)
        case Change(id, str(text)) if "." in id:
            return _written(state, id, text, system)
        case Activate(id) if id.startswith("title."):
            system.focus(f"points.{state.chosen}")
            return state
        case Activate("slide"):
            system.focus(f"title.{state.chosen}", select=True)
            return state
        case Drop("slide", int(key), int(other)) if key in state.keys and other in state.keys:
            return _moved(replace(state, chosen=key), state.keys.index(other))
        case KeyPress(chord) if state.is_shown:
            return _shown(state, SHOW_KEYS.get(chord, 0), chord == "escape")
        case Command("show"):
            return replace(state, is_shown=True)
        case Command(id) if id.startswith("show."):
            return _shown(state, {"show.next": 1, "show.back": -1}.get(id, 0), id == "show.end")
        case Command("undo") if state.before:
            last, before = state.before[-1], state.before[:-1]
            return replace(state, before=before, **last._asdict())
        case Command("new_slide" | "duplicate" as what):
            return _added(state, state.slide if what == "duplicate" else Slide(), system)
        case Command("delete") if len(state.slides) > 1:
            return _deleted(state)
        case Command("up" | "down" as way):
            return _moved(state, state.at + (1 if way == "down" else -1))
    return documents.handle(state, event, system)


def _written(state: Slides, id: str, text: str, system: System) -> Slides:
    """Another title, other points or notes of a slide; the id has which, and the slide's key."""
    part, _, key = id.partition(".")
    at = state.keys.index(int(key))
    match part:
        case "title":
            slide = state.slides[at]._replace(title=text)
        case "points":
            slide = state.slides[at]._replace(points=tuple(text.split("\n")) if text else ())
        case _:
            slide = state.slides[at]._replace(notes=text)
    slides = (*state.slides[:at], slide, *state.slides[at + 1 :])
    return _fitting(state, replace(state, slides=slides), system)


def _fitting(state: Slides, new: Slides, system: System) -> Slides:
    """The new slides, or the old ones if the new are too many."""
    is_larger = num_chars(new.slides) > max(MOST_CHARS, num_chars(state.slides))
    if is_larger or len(new.slides) > max(MOST_SLIDES, len(state.slides)):
        system.refuse(limits.TOO_LONG if is_larger else limits.STORE_FULL)
        return state
    return new


def _remembered(state: Slides) -> tuple[Before, ...]:
    return (*state.before, Before(state.slides, state.keys, state.chosen, state.design))[-UNDO_STEPS:]


def _added(state: Slides, slide: Slide, system: System) -> Slides:
    """A slide after the chosen one."""
    at, key = state.at + 1, max(state.keys) + 1
    slides = (*state.slides[:at], slide, *state.slides[at:])
    keys = (*state.keys[:at], key, *state.keys[at:])
    new = replace(state, slides=slides, keys=keys, chosen=key, before=_remembered(state))
    return _fitting(state, new, system)


def _deleted(state: Slides) -> Slides:
    """State without the chosen slide; the next one is chosen."""
    at = state.at
    slides, keys = (known[:at] + known[at + 1 :] for known in (state.slides, state.keys))
    chosen = keys[min(at, len(keys) - 1)]
    return replace(state, slides=slides, keys=keys, chosen=chosen, before=_remembered(state))  # type: ignore[arg-type]


def _moved(state: Slides, to: int) -> Slides:
    """State with the chosen slide at another place."""
    at = state.at
    if to == at or not 0 <= to < len(state.slides):
        return state
    slides, keys = list(state.slides), list(state.keys)
    slides.insert(to, slides.pop(at))
    keys.insert(to, keys.pop(at))
    return replace(state, slides=tuple(slides), keys=tuple(keys), before=_remembered(state))


def _shown(state: Slides, step: int, is_over: bool) -> Slides:
    """A step of the show, or its end."""
    at = min(max(0, state.at + step), len(state.slides) - 1)
    return replace(state, chosen=state.keys[at], is_shown=not is_over)


SLIDES = register(
    App(
        "slides",
        "Slides",
        "slides",
        Slides.start,
        build,
        handle,
        title=documents.title,
        size=(520, 380),
        focus="slide",
        opens=(".odp",),
        forms=("desktop",),
    )
)
