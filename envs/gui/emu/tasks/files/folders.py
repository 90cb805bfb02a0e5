"""Tasks in Files: make, rename, move, copy, delete, find."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from vlrl.envs.gui.emu.files import base
from vlrl.envs.gui.emu.oracle.intents import (
    Intent,
    click,
    context,
    double_click,
    drag,
    menu,
    open_app,
    type_into,
)
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.words import FOLDERS, LINES, STEMS
from vlrl.envs.gui.emu.wording import listed, worded

HOME = "/Documents"


def contents(draw: Draw, count: int, folder: str = HOME) -> dict[str, str]:
    """Text files with different names."""
    return {f"{folder}/{stem}.txt": draw.pick(LINES) for stem in draw.picks(STEMS, count)}


def row(path: str) -> str:
    """The id of its row in the table."""
    return f"chosen.{path}"


def opening(draw: Draw, folder: str = HOME) -> tuple[list[tuple[str, str]], list[Intent]]:
    """Files is open at level 1; later it has to be opened, and the folder found."""
    if draw.level == 1:
        return [("files", folder)], []
    going: list[Intent] = [open_app("files")]
    at = HOME
    for part in folder.removeprefix(HOME).strip("/").split("/"):
        if part:
            at = f"{at}/{part}"
            going.append(double_click(row(at)))
    return [], going


def _is_there(path: str, world: World) -> bool:
    return path in world.files


def _is_moved(old: str, new: str, text: str, world: World) -> bool:
    return world.read(new) == text and old not in world.files


@template("files/new_folder", levels=(1, 2, 3))
def new_folder(draw: Draw) -> Setup:
    """Make a folder; at level 3 one in a folder, and another one in that."""
    inside, name, below = draw.picks(FOLDERS, 3)
    folder = HOME if draw.level < 3 else f"{HOME}/{inside}"
    windows, going = opening(draw, folder)
    made = [f"{folder}/{name}"] if draw.level < 3 else [f"{folder}/{name}", f"{folder}/{name}/{below}"]
    oracle = [*going, menu("file", "new_folder"), type_into("value", name), click("ok")]
    where = "Documents" if draw.level < 3 else f"Documents/{inside}"
    goal = "Make a folder called {name} in {folder}"
    if draw.level == 3:
        goal += ", and in that one a folder called {below}"
        oracle += [double_click(row(made[0])), menu("file", "new_folder")]
        oracle += [type_into("value", below), click("ok")]
    return Setup(
        goal=worded(goal + ".", name=name, folder=where, below=below),
        files={f"{HOME}/{inside}": None, **contents(draw, 2 + draw.level)},
        windows=windows,
        milestones={f"made {base(path)}": partial(_is_there, path) for path in made},
        changes=[f"file:{path}" for path in made],
        oracle=oracle,
    )


@template("files/rename", levels=(1, 2, 3))
def rename(draw: Draw) -> Setup:
    """Rename one file, two at level 3."""
    before = contents(draw, 6 + draw.level)
    count = 2 if draw.level == 3 else 1
    olds = list(before)[:count]
    news = [stem for stem in draw.picks(STEMS, len(STEMS)) if f"{HOME}/{stem}.txt" not in before][:count]
    pairs = [(old, f"{HOME}/{new}.txt") for old, new in zip(olds, news, strict=True)]
    windows, going = opening(draw)
    said = [worded("{old} to {new}", old=base(old), new=base(new)) for old, new in pairs]
    oracle = [
        step
        for old, new in pairs
        for step in (context(row(old), "rename"), type_into("value", base(new)), click("ok"))
    ]
    return Setup(
        goal=worded("Rename {files} in Documents.", files=listed(said)),
        files=before,
        windows=windows,
        milestones={base(new): partial(_is_moved, old, new, before[old]) for old, new in pairs},
        changes=[f"file:{path}" for pair in pairs for path in pair],
        oracle=[*going, *oracle],
    )


def moved(draw: Draw, pairs: Sequence[tuple[str, str]], before: dict[str, str]) -> dict[str, object]:
    """Milestones and changes of files that go from one path to another."""

    def holds(world: World, old: str, new: str) -> bool:
        return world.read(new) == before[old] and old not in world.files

    return {
        "milestones": {
            base(old): (lambda world, old=old, new=new: holds(world, old, new)) for old, new in pairs
        },
        "changes": [f"file:{path}" for pair in pairs for path in pair],
    }


@template("files/drag", levels=(1, 2, 3), forms=("desktop",))
def drag_into_folder(draw: Draw) -> Setup:
    """Move as many files as the level says into a folder; dragging is the shortest way."""
    target, other = draw.picks(FOLDERS, 2)
    before = contents(draw, 4)
    files = list(before)[: draw.level]
    pairs = [(path, f"{HOME}/{target}/{base(path)}") for path in files]
    return Setup(
        goal=worded(
            "Move {files} into the folder {folder} (files can be dragged).",
            files=listed([base(path) for path in files]),
            folder=target,
        ),
        files={f"{HOME}/{target}": None, f"{HOME}/{other}": None, **before},
        windows=[("files", HOME)],
        oracle=[drag(row(path), row(f"{HOME}/{target}")) for path in files],
        **moved(draw, pairs, before),  # type: ignore[arg-type]
    )


@template("files/cut_and_paste", levels=(1, 2, 3))
def cut_and_paste(draw: Draw) -> Setup:
    """Move a file to a folder by the clipboard; from another folder at level 3."""
    source, target = draw.picks(FOLDERS, 2)
    start = HOME if draw.level < 3 else f"{HOME}/{source}"
    before = contents(draw, 4, start)
    path = next(iter(before))
    windows, going = opening(draw, start)
    end = f"{HOME}/{target}"
    back = [] if start == HOME else [click("up")]
    where = "" if start == HOME else " from {source}"
    goal = f"Move {{file}}{where} into the folder {{folder}} in Documents."
    return Setup(
        goal=worded(goal, file=base(path), source=source, folder=target),
        files={f"{HOME}/{target}": None, f"{HOME}/{source}": None, **before},
        windows=windows,
        oracle=[
            *going,
            context(row(path), "cut"),
            *back,
            double_click(row(end)),
            menu("edit", "paste"),
        ],
        **moved(draw, [(path, f"{end}/{base(path)}")], before),  # type: ignore[arg-type]
    )


@template("files/copy", levels=(1, 2, 3))
def copy(draw: Draw) -> Setup:
    """Copy a file into a folder; at level 3 give the copy another name."""
    target = draw.pick(FOLDERS)
    before = contents(draw, 3 + draw.level)
    path = next(iter(before))
    unused = [stem for stem in draw.picks(STEMS, len(STEMS)) if f"{HOME}/{stem}.txt" not in before]
    windows, going = opening(draw)
    copied = f"{HOME}/{target}/{base(path)}"
    end = copied if draw.level < 3 else f"{HOME}/{target}/{unused[0]}.txt"
    naming = [context(row(copied), "rename"), type_into("value", base(end)), click("ok")]
    said = "" if draw.level < 3 else ", then rename the copy to {new}"
    goal = f"Copy {{file}} from Documents into the folder {{folder}}{said}."
    return Setup(
        goal=worded(goal, file=base(path), folder=target, new=base(end)),
        files={f"{HOME}/{target}": None, **before},
        windows=windows,
        milestones={
            "copied": lambda world: before[path] in (world.read(copied), world.read(end)),
            "named": (
                2,
                lambda world: (
                    world.read(end) == before[path] and (copied == end or copied not in world.files)
                ),
            ),
        },
        changes=[f"file:{copied}", f"file:{end}"],
        oracle=[
            *going,
            context(row(path), "copy"),
            double_click(row(f"{HOME}/{target}")),
            menu("edit", "paste"),
            *(naming if draw.level == 3 else []),
        ],
    )
