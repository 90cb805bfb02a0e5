"""Code: the programs of a folder, edited in tabs, with a list of what is wrong in them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from vlrl.envs.gui.emu import files, limits
from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.code.project import all_problems, matches, text_of
from vlrl.envs.gui.emu.apps.code.window import build
from vlrl.envs.gui.emu.input.events import Activate, Change, Closing, Command, Event, Open, Reply
from vlrl.envs.gui.emu.strings import tr

HOME = "/Documents"
MOST_TABS = 5


@dataclass(frozen=True)
class Code:
    """What is worked on.

    Attributes:
        root: the project's folder; `unfolded` are those in it whose files are listed.
        tabs: paths of the files that are open, `path` of the one that is shown.
        changed: path → text of those that are not saved.
        side: "files" or "search", which looks for `search` in all files.
        is_finding: whether one can search the file for `query`, and put `other` in its place.
        words: whether only whole words are found.
        problem: number of the one that was gone to, and `hit` that of the place in the file; −1 for none.
        asked: path of the tab that a dialog is about; "" for the whole window.
    """

    root: str = HOME
    unfolded: tuple[str, ...] = ()
    tabs: tuple[str, ...] = ()
    path: str = ""
    changed: Mapping[str, str] = field(default_factory=dict)
    side: str = "files"
    search: str = ""
    is_finding: bool = False
    query: str = ""
    other: str = ""
    words: bool = False
    problem: int = -1
    hit: int = -1
    asked: str = ""

    def places(self, text: str) -> list[int]:
        """Where the text that is searched for stands in a file."""
        if not self.query:
            return []
        pattern = re.escape(self.query)
        if self.words:
            pattern = rf"(?<!\w){pattern}(?!\w)"
        return [match.start() for match in re.finditer(pattern, text)]


def start(argument: str, reader: Reader) -> Code:
    """Start with a folder, or with a file and the folder that it is in."""
    if isinstance(reader.read(argument), str):
        return _opened(Code(files.parent(argument)), argument)
    return Code(argument) if argument and reader.is_folder(argument) else Code()


def handle(state: Code, event: Event, system: System) -> Code:
    """Files, tabs, texts; going to problems and matches."""
    match event:
        case Open(path):
            inside = path.startswith(f"{state.root}/") and isinstance(system.read(path), str)
            return _opened(state, path) if inside else start(path, system)
        case Change(id, str(text)) if id.startswith("text."):
            return _written(state, id.removeprefix("text."), text, system)
        case Change("file", str(path)) if not system.is_folder(path):
            return _opened(state, path) if isinstance(system.read(path), str) else state
        case Command("file.toggle", path) | Activate("file", path) if system.is_folder(path):
            others = tuple(known for known in state.unfolded if known != path)
            return replace(state, unfolded=others if path in state.unfolded else (*others, path))
        case Change("problem", int(number)):
            return _to_problem(state, number, system)
        case Change("match", int(number)):
            found = matches(state.root, state.search, state.changed, system)[number]
            return _shown(state, found.path, found.start, found.start + len(state.search), system)
        case Change("query" | "words"):
            return replace(state, hit=-1)
        case Activate("query"):
            return _next_match(state, system)
        case Command("replace_all") if state.path:
            return _replaced(state, system)
        case Command(id):
            return _command(state, id, system)
        case Reply():
            return _answered(state, event, system)
        case Closing() if state.changed:
            system.keep_open()
            system.message("changed", tr("Save the changes?"), ("yes", "no", "cancel"), "question")
            return replace(state, asked="")
    return state


def _command(state: Code, id: str, system: System) -> Code:
    match id:
        case "new":
            system.prompt("new", tr("Name of the new file"), "")
        case "open":
            system.choose_file("open", "open", state.root)
        case "save" if state.path:
            return _saved(state, (state.path,), system)
        case "save_all":
            return _saved(state, tuple(state.changed), system)
        case "close_tab" if state.path in state.changed:
            system.message("changed", tr("Save the changes?"), ("yes", "no", "cancel"), "question")
            return replace(state, asked=state.path)
        case "close_tab" if state.path:
            return _closed(state, state.path)
        case "find" if state.path:
            system.focus(f"text.{state.path}" if state.is_finding else "query", select=not state.is_finding)
            return replace(state, is_finding=not state.is_finding)
        case "find_all":
            system.focus("search", select=True)
            return replace(state, side="search")
        case "line" if state.path:
            system.prompt("line", tr("Go to line"), "")
        case "next":
            return _to_problem(state, state.problem + 1, system)
    return state


def _answered(state: Code, reply: Reply, system: System) -> Code:
    match reply:
        case Reply("new", str(name)) if name.strip() and "/" not in name:
            path = files.join(state.root, name.strip())
            if system.exists(path) or system.write(path, ""):
                return _opened(state, path) if isinstance(system.read(path), str) else state
        case Reply("open", str(path)) if isinstance(system.read(path), str):
            inside = path.startswith(f"{state.root}/") or bool(state.changed)
            return _opened(state, path) if inside else start(path, system)
        case Reply("line", str(text)) if text.strip().isdecimal():
            return _to_line(state, int(text), system)
        case Reply("changed", "yes" | "no" as what):
            paths = (state.asked,) if state.asked else tuple(state.changed)
            if what == "yes":
                state = _saved(state, paths, system)
                if any(path in state.changed for path in paths):
                    return state
            if not state.asked:
                system.close()
                return state
            changed = {path: text for path, text in state.changed.items() if path not in paths}
            return _closed(replace(state, changed=changed), state.asked)
    return state


def _opened(state: Code, path: str) -> Code:
    """A file in a tab of its own, in the place of the oldest that is saved where they are many."""
    if path in state.tabs:
        return replace(state, path=path)
    kept = list(state.tabs)
    saved = [one for one in kept if one not in state.changed]
    if len(kept) >= MOST_TABS and saved:
        kept.remove(saved[0])
    return replace(state, tabs=(*kept, path), path=path)


def _closed(state: Code, path: str) -> Code:
    at = state.tabs.index(path)
    left = state.tabs[:at] + state.tabs[at + 1 :]
    return replace(state, tabs=left, path=left[min(at, len(left) - 1)] if left else "")


def _written(state: Code, path: str, text: str, system: System) -> Code:
    """Another text of a file; one that is as on the disk again is not changed."""
    changed = {known: one for known, one in state.changed.items() if known != path}
    if system.read(path) != text:
        changed[path] = text
    return replace(state, changed=changed)


def _saved(state: Code, paths: tuple[str, ...], system: System) -> Code:
    for path in paths:
        if path in state.changed and system.write(path, state.changed[path]):
            state = _written(state, path, state.changed[path], system)
    return state


def _shown(state: Code, path: str, first: int, last: int, system: System) -> Code:
    """Some characters of a file, selected."""
    system.reveal(f"text.{path}", first, last)
    return _opened(state, path)


def _to_problem(state: Code, number: int, system: System) -> Code:
    found = all_problems(state.root, state.changed, system)
    if not found:
        return state
    path, problem = found[number % len(found)]
    return _shown(replace(state, problem=number % len(found)), path, problem.start, problem.end, system)


def _to_line(state: Code, number: int, system: System) -> Code:
    lines = text_of(state.path, state.changed, system).split("\n")
    number = min(max(1, number), len(lines))
    at = sum(len(line) + 1 for line in lines[: number - 1])
    return _shown(state, state.path, at, at, system)


def _next_match(state: Code, system: System) -> Code:
    """The next place where it stands in the file, selected."""
    places = state.places(text_of(state.path, state.changed, system))
    if not places:
        return state
    hit = (state.hit + 1) % len(places)
    return _shown(replace(state, hit=hit), state.path, places[hit], places[hit] + len(state.query), system)


def _replaced(state: Code, system: System) -> Code:
    text = text_of(state.path, state.changed, system)
    places = state.places(text)
    parts, at = [], 0
    for place in places:
        parts += [text[at:place], state.other]
        at = place + len(state.query)
    new = "".join((*parts, text[at:]))
    if len(new) > max(len(text), limits.AREA_CHARS):
        system.refuse(limits.TOO_LONG)
        return state
    return _written(state, state.path, new, system)


def title(state: Code) -> str:
    """The file and the project."""
    name = files.base(state.root) or tr("Code")
    return f"{files.base(state.path)} – {name}" if state.path else name


CODE = register(
    App(
        "code",
        "Code",
        "code",
        start,
        build,
        handle,
        title=title,
        size=(600, 410),
        opens=(".py",),
        forms=("desktop",),
    )
)
