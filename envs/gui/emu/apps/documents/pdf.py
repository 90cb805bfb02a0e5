"""Document Viewer: PDF files, page by page, with their contents, bookmarks and a search."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.documents.paper import Hit, Paper, found
from vlrl.envs.gui.emu.apps.documents.pdf_window import build
from vlrl.envs.gui.emu.files import base, parent
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Event, KeyPress, Open, Reply
from vlrl.envs.gui.emu.strings import tr

STEPS = {"right": 1, "page_down": 1, "space": 1, "n": 1, "left": -1, "page_up": -1, "p": -1}


class Bookmark(NamedTuple):
    """A page of a file, from 0 on; the app keeps a tuple of these, in their order."""

    path: str
    page: int


@dataclass(frozen=True)
class Viewer:
    """What is shown.

    Attributes:
        path: of the file; "" for none.
        page: from 0 on.
        goto: what stands in the field for the number of a page.
        panel: "contents" or "bookmarks", whether or not it is shown.
        has_panel: whether it is; on a phone it takes the page's place.
        whole: whether a page is shown in its whole height, "width" or "page".
        query: what is searched for.
        is_finding: whether the field for it is shown.
        hit: the place that was gone to.
    """

    path: str = ""
    page: int = 0
    goto: str = "1"
    panel: str = "contents"
    has_panel: bool = True
    whole: str = "width"
    query: str = ""
    is_finding: bool = False
    hit: Hit | None = None


def start(argument: str, reader: Reader) -> Viewer:
    """Start with a file, or none."""
    path = argument if isinstance(reader.read(argument), Paper) else ""
    return Viewer(path, has_panel=not reader.is_mobile)


def kept(data: object) -> tuple[Bookmark, ...]:
    """The bookmarks of all files."""
    return data if isinstance(data, tuple) else ()


def handle(state: Viewer, event: Event, system: System) -> Viewer:
    """Turn pages, search, keep bookmarks."""
    paper = system.read(state.path)
    match event:
        case Command("open"):
            system.choose_file("open", "open", parent(state.path) if state.path else "/Documents")
        case Open(path) | Reply("open", str(path)):
            return replace(start(path, system), panel=state.panel, whole=state.whole)
        case _ if isinstance(paper, Paper):
            return _in_paper(state, event, paper, system)
    return state


def _in_paper(state: Viewer, event: Event, paper: Paper, system: System) -> Viewer:
    match event:
        case Change("contents" | "mark", int(page)):
            state = replace(state, has_panel=state.has_panel and not system.is_mobile)
            return _at(state, page, paper)
        case Change("query"):
            return replace(state, hit=None)
        case Activate("query") | Command("find.next" | "find.back"):
            return _found(state, paper, back=event == Command("find.back"))
        case Activate("goto", text):
            number = int(text) if text.strip().isdecimal() else 0
            return _at(state, number - 1 if 1 <= number <= len(paper.pages) else state.page, paper)
        case KeyPress(chord) if chord in STEPS:
            return _at(state, state.page + STEPS[chord], paper)
        case KeyPress("home" | "end" as chord):
            return _at(state, 0 if chord == "home" else len(paper.pages) - 1, paper)
        case KeyPress("escape"):
            return replace(state, is_finding=False, query="", hit=None)
        case Command("next" | "previous" as way):
            return _at(state, state.page + (1 if way == "next" else -1), paper)
        case Command("find"):
            system.focus("" if state.is_finding else "query")
            return replace(state, is_finding=not state.is_finding, query="", hit=None)
        case Command("goto"):
            system.focus("goto", select=True)
        case Command("panel"):
            return replace(state, has_panel=not state.has_panel)
        case Command("bookmark"):
            here, known = Bookmark(state.path, state.page), kept(system.data)
            others = tuple(one for one in known if one != here)
            system.keep(others if here in known else tuple(sorted((*known, here))))
    return state


def _at(state: Viewer, page: int, paper: Paper) -> Viewer:
    """Another page, as far as there are any."""
    page = min(max(0, page), len(paper.pages) - 1)
    return replace(state, page=page, goto=str(page + 1), hit=None)


def _found(state: Viewer, paper: Paper, back: bool) -> Viewer:
    """The next place where the word stands, from the page that is shown on; or the one before."""
    hits = found(paper, state.query)
    if not hits:
        return replace(state, hit=None)
    if state.hit in hits:
        at = (hits.index(state.hit) + (-1 if back else 1)) % len(hits)
    else:
        at = next((n for n, hit in enumerate(hits) if hit.page >= state.page), 0)
    return replace(_at(state, hits[at].page, paper), hit=hits[at])


def title(state: Viewer) -> str:
    """The file's name."""
    return base(state.path) or tr("Document Viewer")


def back(state: Viewer) -> Viewer | None:
    """A phone's back leaves the contents, and the search."""
    if state.has_panel:
        return replace(state, has_panel=False)
    return replace(state, is_finding=False, query="", hit=None) if state.is_finding else None


PDF = register(
    App(
        "pdf",
        "Document Viewer",
        "pdf",
        start,
        build,
        handle,
        title=title,
        size=(540, 390),
        opens=(".pdf",),
        back=back,
    )
)
