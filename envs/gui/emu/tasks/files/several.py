"""Tasks in Files with several files at once: selected by a rubber band, with ctrl, or all of them."""

from __future__ import annotations

from functools import partial

from vlrl.envs.gui.emu.files import base
from vlrl.envs.gui.emu.oracle.intents import click, double_click, drag, key, menu
from vlrl.envs.gui.emu.oracle.selecting import leave_out, pick, pick_between
from vlrl.envs.gui.emu.records import trash_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.shapes import drawn, shapes
from vlrl.envs.gui.emu.tasks.content.words import FOLDERS, LINES, STEMS
from vlrl.envs.gui.emu.tasks.files.folders import HOME, contents, moved, opening, row
from vlrl.envs.gui.emu.tasks.files.lookup import is_in_the_trash
from vlrl.envs.gui.emu.wording import worded

KINDS = {".png": "pictures", ".csv": "tables", ".txt": "text files"}
"""Ending → what a goal calls such files."""


def _content(draw: Draw, ending: str) -> object:
    if ending == ".png":
        return drawn(shapes(draw, 2))
    return f"{draw.pick(STEMS)},{draw.number(1, 99)}" if ending == ".csv" else draw.pick(LINES)


@template("files/delete_kind", levels=(1, 2, 3))
def delete_kind(draw: Draw) -> Setup:
    """Delete all pictures, or all tables; sorted by their kind they lie beside one another."""
    folder = HOME if draw.level < 3 else f"{HOME}/{draw.pick(FOLDERS)}"
    wanted, other, third = draw.picks(tuple(KINDS), 3)
    count = 2 if draw.level == 1 else 3
    endings = [*(count * (wanted,)), *(draw.level * (other,)), *(2 * (third,))]
    stems = draw.picks(STEMS, len(endings))
    before = {
        f"{folder}/{stem}{ending}": _content(draw, ending)
        for stem, ending in zip(stems, endings, strict=True)
    }
    gone = sorted((path for path in before if path.endswith(wanted)), key=base)
    trashed = [f"/Trash/{base(path)}" for path in gone]
    windows, going = opening(draw, folder)
    delete = click("delete") if draw.looks["form"] == "mobile" else key("delete")
    return Setup(
        goal=worded(
            "Delete {files} in {folder} (the trash keeps them).",
            files=worded(f"all {KINDS[wanted]}"),
            folder=folder.removeprefix("/"),
        ),
        files=before,
        windows=windows,
        milestones={base(path): partial(is_in_the_trash, path, before[path]) for path in gone},
        changes=[*(f"file:{path}" for path in (*gone, *trashed)), *map(trash_record, trashed), "file:/Trash"],
        oracle=[*going, click("chosen.sort.1"), pick_between(*map(row, gone)), delete],
    )


@template("files/move_several", levels=(1, 2, 3))
def move_several(draw: Draw) -> Setup:
    """Move two to four files into a folder together."""
    target, other = draw.picks(FOLDERS, 2)
    before = contents(draw, 2 + 2 * draw.level)
    files = draw.picks(list(before), 1 + draw.level)
    end = f"{HOME}/{target}"
    windows, going = opening(draw)
    if draw.level == 1 and draw.looks["form"] == "desktop":
        put = [drag(row(files[0]), row(end))]
    else:
        put = [key("ctrl+x"), double_click(row(end)), menu("edit", "paste")]
    names = ", ".join(map(base, files[:-1]))
    return Setup(
        goal=worded(
            "Move {files} and {last} in Documents into the folder {folder}.",
            files=names,
            last=base(files[-1]),
            folder=target,
        ),
        files={end: None, f"{HOME}/{other}": None, **before},
        windows=windows,
        oracle=[*going, pick(*map(row, files)), *put],
        **moved(draw, [(path, f"{end}/{base(path)}") for path in files], before),  # type: ignore[arg-type]
    )


@template("files/copy_all", levels=(1, 2, 3))
def copy_all(draw: Draw) -> Setup:
    """Copy all files of a folder into another one; all but one at level 3."""
    source, target = draw.picks(FOLDERS, 2)
    start, end = f"{HOME}/{source}", f"{HOME}/{target}"
    before = contents(draw, 3 + draw.level, start)
    paths = list(before)[1:] if draw.level == 3 else list(before)
    left = [path for path in before if path not in paths]
    windows, going = opening(draw, start)
    but = " except {file}" if left else ""
    copies = {path: f"{end}/{base(path)}" for path in paths}

    def is_copied(world: World, path: str) -> bool:
        return bool(world.read(copies[path]) == before[path] == world.read(path))

    return Setup(
        goal=worded(
            f"Copy all files{but} from the folder {{source}} in Documents into the folder {{folder}} beside "
            "it.",
            file=base(left[0]) if left else "",
            source=source,
            folder=target,
        ),
        files={end: None, **before},
        windows=windows,
        milestones={base(path): partial(is_copied, path=path) for path in paths},
        changes=[f"file:{path}" for path in copies.values()],
        oracle=[
            *going,
            key("ctrl+a"),
            *(leave_out(row(path)) for path in left),
            key("ctrl+c"),
            click("up"),
            double_click(row(end)),
            menu("edit", "paste"),
        ],
    )
