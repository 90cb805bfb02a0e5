"""Tasks in Files: the trash, opening, finding, and what can be read there."""

from __future__ import annotations

from functools import partial

from vlrl.envs.gui.emu.files import base
from vlrl.envs.gui.emu.oracle.intents import answer, click, context, double_click, menu, open_app, type_into
from vlrl.envs.gui.emu.records import trash_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.words import FOLDERS, LINES, STEMS
from vlrl.envs.gui.emu.tasks.files.folders import HOME, contents, opening, row
from vlrl.envs.gui.emu.wording import listed, worded


def is_in_the_trash(path: str, content: object, world: World) -> bool:
    """Whether a file was deleted, and can be restored to where it was."""
    trashed, origins = f"/Trash/{base(path)}", dict(world.store.get("files") or ())
    return bool(world.read(trashed) == content and origins.get(trashed) == path)


@template("files/delete", levels=(1, 2, 3))
def delete(draw: Draw) -> Setup:
    """Put as many files as the level says into the trash."""
    before = contents(draw, 5 + draw.level)
    files = draw.picks(list(before), draw.level)
    windows, going = opening(draw)
    return Setup(
        goal=worded(
            "Delete {files} from Documents (the trash keeps them).",
            files=listed([base(path) for path in files]),
        ),
        files=before,
        windows=windows,
        milestones={base(path): partial(is_in_the_trash, path, before[path]) for path in files},
        changes=[
            *(f"file:{path}" for path in files),
            *(f"file:/Trash/{base(path)}" for path in files),
            *(trash_record(f"/Trash/{base(path)}") for path in files),
            "file:/Trash",
        ],
        oracle=[*going, *(context(row(path), "delete") for path in files)],
    )


@template("files/restore", levels=(1, 2))
def restore(draw: Draw) -> Setup:
    """Bring a file back from the trash."""
    before = contents(draw, 3 + draw.level, "/Trash")
    path = draw.pick(list(before))
    back = f"{HOME}/{base(path)}"
    origins = tuple((trashed, f"{HOME}/{base(trashed)}") for trashed in before)
    going = [open_app("files"), click("up"), double_click(row("/Trash"))]
    return Setup(
        goal=worded("Restore {file} from the trash.", file=base(path)),
        files=before,
        data={"files": origins},
        windows=[("files", "/Trash")] if draw.level == 1 else [],
        milestones={"restored": lambda world: world.read(back) == before[path] and path not in world.files},
        changes=[f"file:{back}", f"file:{path}", trash_record(path)],
        oracle=[*(going if draw.level == 2 else []), context(row(path), "restore")],
    )


@template("files/empty_trash", levels=(1, 2))
def empty_trash(draw: Draw) -> Setup:
    """Empty the trash and say yes to the question."""
    trashed = contents(draw, 2 + draw.level, "/Trash")
    going = [open_app("files"), click("up"), double_click(row("/Trash"))]
    return Setup(
        goal=worded("Empty the trash."),
        files={**trashed, **contents(draw, 3)},
        data={"files": tuple((path, f"{HOME}/{base(path)}") for path in trashed)},
        windows=[("files", "/Trash")] if draw.level == 1 else [],
        milestones={"emptied": lambda world: not any(path in world.files for path in trashed)},
        changes=[*(f"file:{path}" for path in trashed), *map(trash_record, trashed)],
        oracle=[*(going if draw.level == 2 else []), menu("file", "empty"), click("yes")],
    )


@template("files/open", levels=(1, 2, 3))
def open_file(draw: Draw) -> Setup:
    """Open a file with the editor; at levels 2 and 3 it is in a folder, or in one in that."""
    outer, inner = draw.picks(FOLDERS, 2)
    folder = (HOME, f"{HOME}/{outer}", f"{HOME}/{outer}/{inner}")[draw.level - 1]
    before = contents(draw, 8, folder)
    path = draw.pick(list(before))
    windows, going = opening(draw, folder)
    where = folder.removeprefix("/")
    return Setup(
        goal=worded("Open the file {file} in {folder}.", file=base(path), folder=where),
        files=before,
        windows=windows,
        milestones={
            "opened": lambda world: (editor := world.app("editor")) is not None and editor.path == path
        },
        over=lambda world: (editor := world.app("editor")) is not None and editor.path not in ("", path),
        oracle=[*going, double_click(row(path))],
    )


@template("files/words", levels=(1, 2, 3))
def words(draw: Draw) -> Setup:
    """Say how many words a file has, by its details."""
    count = 4 + 2 * draw.level
    before = {
        f"{HOME}/{stem}.txt": " ".join(draw.picks(LINES, draw.number(1, 6)))
        for stem in draw.picks(STEMS, count)
    }
    path = draw.pick(list(before))
    windows, going = opening(draw)
    said = str(len(before[path].split()))
    return Setup(
        goal=worded("How many words does {file} in Documents have? Answer with the number.", file=base(path)),
        files=before,
        windows=windows,
        answer=said,
        oracle=[*going, context(row(path), "details"), answer(said)],
    )


@template("files/largest", levels=(1, 2, 3))
def largest(draw: Draw) -> Setup:
    """Name the largest (or smallest) file of a folder."""
    folder = HOME if draw.level < 3 else f"{HOME}/{draw.pick(FOLDERS)}"
    sizes = draw.picks(range(1, 12), 4 + 3 * draw.level if draw.level < 3 else 11)
    stems = draw.picks(STEMS, len(sizes))
    before = {
        f"{folder}/{stem}.txt": " ".join([draw.pick(LINES)[:14]] * size)
        for stem, size in zip(stems, sizes, strict=True)
    }
    biggest = draw.number(0, 1) == 1
    order = sorted(before, key=lambda path: len(before[path]))
    windows, going = opening(draw, folder)
    said = base(order[-1] if biggest else order[0])
    sorting = [click("chosen.sort.2")] * (2 if biggest else 1)
    return Setup(
        goal=worded(
            f"Which file in {{folder}} is the {'largest' if biggest else 'smallest'}? Answer with its name.",
            folder=folder.removeprefix("/"),
        ),
        files=before,
        windows=windows,
        answer=said,
        oracle=[*going, *sorting, answer(said)],
    )


@template("files/search_and_delete", levels=(2, 3))
def search_and_delete(draw: Draw) -> Setup:
    """Find a file that is somewhere in a few folders, and delete it."""
    folders = draw.picks(FOLDERS, 2 + draw.level)
    stems = draw.picks(STEMS, 3 * len(folders))
    before = {
        f"{HOME}/{folders[index // 3]}/{stem}.txt": draw.pick(LINES) for index, stem in enumerate(stems)
    }
    path = draw.pick(list(before))
    stem = base(path).removesuffix(".txt")
    return Setup(
        goal=worded(
            "Somewhere in the folders of Documents is {file}. Delete it (“{search}” finds it).",
            file=base(path),
            search=tr("Search"),
        ),
        files=before,
        windows=[("files", HOME)] if draw.level == 2 else [],
        milestones={"deleted": partial(is_in_the_trash, path, before[path])},
        changes=[
            f"file:{path}",
            f"file:/Trash/{base(path)}",
            "file:/Trash",
            trash_record(f"/Trash/{base(path)}"),
        ],
        oracle=[
            *([open_app("files")] if draw.level == 3 else []),
            type_into("query", stem),
            context(row(path), "delete"),
        ],
    )
