"""Work in the file manager (pcmanfm)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vlrl.envs.gui.actions import Action, OpenApp, TypeText
from vlrl.envs.gui.x11.sandbox.home import FOLDER
from vlrl.envs.gui.x11.task import DesktopTask, Predicate, Setup
from vlrl.envs.gui.x11.tasks.words import gone, has, keys, names, sentence

_APPS = ("pcmanfm",)


def _papers(rng: np.random.Generator, stems: list[str]) -> dict[str, bytes]:
    return {f"{name}.txt": f"{sentence(rng)}\n".encode() for name in stems}


def _select(name: str) -> list[Action]:
    """Find a file by its first letters: typed, they select it."""
    return [OpenApp("pcmanfm"), TypeText(name), *keys("escape")]


def _go_to(folder: str) -> list[Action]:
    return [*keys("ctrl+l"), *keys("ctrl+a"), TypeText(f"/home/user/{folder}\n")]


def _make_folder(rng: np.random.Generator, level: int) -> Setup:
    new, *others = names(rng, 1 + 4 * level)
    return Setup(
        goal=f"Make a folder named {new} in the home folder.",
        oracle=[OpenApp("pcmanfm"), *keys("ctrl+shift+n", "ctrl+a"), TypeText(f"{new}\n")],
        files=_papers(rng, others),
        milestones={"the folder is there": has(new, FOLDER)},
        changed=[new],
    )


def _rename(rng: np.random.Generator, level: int) -> Setup:
    old, new, *others = names(rng, 2 + 5 * level)
    files = _papers(rng, [old, *others])
    return Setup(
        goal=f"Rename the file {old}.txt to {new}.txt.",
        oracle=[*_select(f"{old}.txt"), *keys("f2", "ctrl+a"), TypeText(f"{new}.txt\n")],
        files=files,
        milestones={
            "the old name is gone": gone(f"{old}.txt"),
            "it has the new one": has(f"{new}.txt", files[f"{old}.txt"]),
        },
        changed=[f"{old}.txt", f"{new}.txt"],
    )


def _delete(rng: np.random.Generator, level: int) -> Setup:
    old, *others = names(rng, 1 + 6 * level)
    return Setup(
        goal=f"Delete the file {old}.txt; it may go into the trash.",
        oracle=[*_select(f"{old}.txt"), *keys("delete", "enter")],
        files=_papers(rng, [old, *others]),
        milestones={"it is gone": gone(f"{old}.txt")},
        changed=[f"{old}.txt"],
    )


def _carry(rng: np.random.Generator, level: int, verb: str, chord: str, stays: bool) -> Setup:
    name, folder, *others = names(rng, 2 + 5 * level)
    files = {f"{folder}/": b"", **_papers(rng, [name, *others])}
    there: Mapping[str, Predicate] = {"it is there": has(f"{folder}/{name}.txt", files[f"{name}.txt"])}
    left: Mapping[str, Predicate] = {} if stays else {"it is here no longer": gone(f"{name}.txt")}
    return Setup(
        goal=f"{verb} the file {name}.txt into the folder {folder}.",
        oracle=[*_select(f"{name}.txt"), *keys(chord), *_go_to(folder), *keys("ctrl+v")],
        files=files,
        milestones={**there, **left},
        changed=[f"{folder}/{name}.txt", *([] if stays else [f"{name}.txt"])],
    )


def _move(rng: np.random.Generator, level: int) -> Setup:
    return _carry(rng, level, "Move", "ctrl+x", stays=False)


def _copy(rng: np.random.Generator, level: int) -> Setup:
    return _carry(rng, level, "Copy", "ctrl+c", stays=True)


TASKS = [
    DesktopTask("files_make_folder", _APPS, _make_folder),
    DesktopTask("files_rename", _APPS, _rename),
    DesktopTask("files_delete", _APPS, _delete),
    DesktopTask("files_move", _APPS, _move),
    DesktopTask("files_copy", _APPS, _copy),
]
