"""Tasks in the text editor, and with the files it writes."""

from __future__ import annotations

from functools import partial

from vlrl.envs.gui.emu.apps.calendar import FIRST_MONTH, HOURS, MONTHS, Appointment
from vlrl.envs.gui.emu.files import base
from vlrl.envs.gui.emu.oracle.intents import (
    Intent,
    answer,
    click,
    context,
    double_click,
    key,
    menu,
    open_app,
    type_into,
    write,
)
from vlrl.envs.gui.emu.records import event_record, trash_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.words import FOLDERS, LINES, STEMS, TITLES
from vlrl.envs.gui.emu.tasks.files.folders import HOME, row
from vlrl.envs.gui.emu.tasks.files.lookup import is_in_the_trash
from vlrl.envs.gui.emu.wording import worded

NAMES = ("Nora", "Omar", "Lena", "Pavel", "Aiko", "Bruno", "Clara", "Dario", "Emil", "Fatou", "Greta", "Hugo")
SENTENCES = (
    "{} calls at noon.",
    "Ask {} for the keys.",
    "Lunch with {} at the harbour.",
    "{} brings the tickets.",
    "The letter to {} is ready.",
    "Pay {} back by Friday.",
    "{} waters the plants.",
    "Send the photos to {}.",
)


def _text(world: World) -> str:
    editor = world.app("editor")
    return editor.text if editor is not None else ""


def _opened(draw: Draw, path: str) -> tuple[list[tuple[str, str]], list[Intent]]:
    """The file is open, or at levels 2 and 3 is to be opened by the folder it is in."""
    if draw.level == 1:
        return [("editor", path)], []
    return [], [open_app("files"), double_click(row(path))]


@template("editor/find_and_replace", levels=(1, 2, 3))
def find_and_replace(draw: Draw) -> Setup:
    """Put one name in the place of another all over a text, and save it."""
    path = f"{HOME}/{draw.pick(STEMS)}.txt"
    old, new, third = draw.picks(NAMES, 3)
    chosen = draw.picks(SENTENCES, 2 + 2 * draw.level)
    names = [old, old, *draw.picks((old, third, third, old, third, third), len(chosen) - 2)]
    before = "\n".join(said.format(name) for said, name in zip(chosen, names, strict=True))
    after = before.replace(old, new)
    windows, going = _opened(draw, path)
    return Setup(
        goal=worded(
            "Replace “{old}” by “{new}” everywhere in {file} in Documents, and save it.",
            old=old,
            new=new,
            file=base(path),
        ),
        files={path: before},
        windows=windows,
        milestones={
            "replaced": lambda world: _text(world) == after,
            "saved": (2, lambda world: world.read(path) == after),
        },
        changes=[f"file:{path}"],
        oracle=[
            *going,
            menu("edit", "find"),
            type_into("query", old),
            type_into("other", new),
            click("replace_all"),
            menu("file", "save"),
        ],
    )


@template("editor/add_line", levels=(1, 2, 3), forms=("desktop",))
def add_line(draw: Draw) -> Setup:
    """A new first or last line, by the keys that go there."""
    path = f"{HOME}/{draw.pick(STEMS)}.txt"
    *lines, new = draw.picks(LINES, 2 + draw.level)
    is_first = draw.number(0, 1) == 1
    before = "\n".join(lines)
    after = f"{new}\n{before}" if is_first else f"{before}\n{new}"
    windows, going = _opened(draw, path)
    typing = [key("ctrl+home"), write(new + "\n")] if is_first else [key("ctrl+end"), write("\n" + new)]
    return Setup(
        goal=worded(
            f"Add a {'first' if is_first else 'last'} line “{{text}}” to {{file}} in Documents, and save it.",
            text=new,
            file=base(path),
        ),
        files={path: before, f"{HOME}/zzz.txt": new},
        windows=windows,
        milestones={
            "written": lambda world: _text(world).rstrip() == after,
            "saved": (2, lambda world: str(world.read(path)).rstrip() == after),
        },
        changes=[f"file:{path}"],
        oracle=[*going, click("text"), *typing, key("ctrl+s")],
    )


@template("editor/save_as", levels=(1, 2))
def save_as(draw: Draw) -> Setup:
    """Save a file under another name; at level 2 after a change, the old one kept."""
    old, new = (f"{HOME}/{stem}.txt" for stem in draw.picks(STEMS, 2))
    before, changed = draw.picks(LINES, 2)
    text = before if draw.level == 1 else changed
    typing = [type_into("text", changed)] if draw.level == 2 else []
    goal = "Save it as {new} in Documents, too ({old} is open)."
    if draw.level == 2:
        goal = (
            "Replace all of the text of {old} by “{text}”, but save it as {new} in Documents and leave {old} "
        )
        goal += "as it is."
    return Setup(
        goal=worded(goal, old=base(old), new=base(new), text=text),
        files={old: before},
        windows=[("editor", old)],
        milestones={"saved": lambda world: world.read(new) == text},
        changes=[f"file:{new}"],
        oracle=[*typing, menu("file", "save_as"), type_into("name", base(new)), click("accept")],
    )


@template("editor/new_file", levels=(1, 2, 3))
def new_file(draw: Draw) -> Setup:
    """Write a text and save it; in a folder of its own at level 3."""
    folder = draw.pick(FOLDERS)
    where = HOME if draw.level < 3 else f"{HOME}/{folder}"
    path, text = f"{where}/{draw.pick(STEMS)}.txt", draw.pick(LINES)
    going = [] if draw.level == 1 else [open_app("editor")]
    into = [] if draw.level < 3 else [double_click(row(where))]
    return Setup(
        goal=worded(
            "Write a text file {file} that says “{text}” in {folder}.",
            file=base(path),
            text=text,
            folder=where.removeprefix("/"),
        ),
        files={f"{HOME}/{folder}": None},
        windows=[("editor", "")] if draw.level == 1 else [],
        milestones={
            "written": lambda world: _text(world).strip() == text,
            "saved": (2, lambda world: str(world.read(path)).strip() == text),
        },
        changes=[f"file:{path}"],
        oracle=[
            *going,
            type_into("text", text),
            menu("file", "save"),
            *into,
            type_into("name", base(path)),
            click("accept"),
        ],
    )


@template("editor/read", levels=(1, 2, 3))
def read(draw: Draw) -> Setup:
    """Say who a file names; the more files, the higher the level."""
    stems, names = draw.picks(STEMS, 1 + 2 * draw.level), draw.picks(NAMES, 1 + 2 * draw.level)
    files = {
        f"{HOME}/{stem}.txt": draw.pick(SENTENCES).format(name)
        for stem, name in zip(stems, names, strict=True)
    }
    path = f"{HOME}/{stems[0]}.txt"
    return Setup(
        goal=worded("Whose name is in {file} in Documents? Answer with the name.", file=base(path)),
        files=files,
        windows=[("files", HOME)] if draw.level == 1 else [],
        answer=names[0],
        oracle=[
            *([] if draw.level == 1 else [open_app("files")]),
            double_click(row(path)),
            answer(names[0]),
        ],
    )


@template("editor/into_calendar", levels=(1, 2))
def into_calendar(draw: Draw) -> Setup:
    """A note says what is when; it is to be in the calendar, and at level 2 the note in the trash."""
    path = f"{HOME}/{draw.pick(STEMS)}.txt"
    day = f"{FIRST_MONTH[0]}-{FIRST_MONTH[1]:02d}-{draw.number(1, 28):02d}"
    wanted = Appointment(day, draw.pick(HOURS), draw.pick(TITLES))
    said = f"{wanted.title}: {int(day[8:])} {MONTHS[FIRST_MONTH[1] - 1]} {day[:4]}, {wanted.time}"
    throwing: list[Intent] = [open_app("files"), context(row(path), "delete")] if draw.level == 2 else []
    trashed = f"/Trash/{base(path)}"
    goal = "Put the event that {file} in Documents is about into the calendar"
    return Setup(
        goal=worded(goal + (", then delete the file." if draw.level == 2 else "."), file=base(path)),
        files={path: said},
        milestones={
            "in the calendar": (2, lambda world: world.store.get("calendar") == (wanted,)),
            **({"deleted": partial(is_in_the_trash, path, said)} if draw.level == 2 else {}),
        },
        changes=[
            event_record(wanted),
            *([trash_record(trashed), f"file:{path}", "file:/Trash", f"file:{trashed}"] * (draw.level == 2)),
        ],
        oracle=[
            open_app("files"),
            double_click(row(path)),
            open_app("calendar"),
            click("new"),
            type_into("title", wanted.title),
            type_into("day", day),
            click("time"),
            click(str(HOURS.index(wanted.time))),
            click("save"),
            *throwing,
        ],
    )
