"""Work with images: the image viewer (gpicview) and the file manager."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vlrl.envs.gui.actions import Action, Answer, OpenApp, TypeText
from vlrl.envs.gui.x11.task import DesktopTask, Setup
from vlrl.envs.gui.x11.tasks.pixels import COLOURS, SIDE, checks, patch, png, shows, sign
from vlrl.envs.gui.x11.tasks.words import NOUNS, draw, gone, has, holds, in_terminal, keys, new_text

_VIEWED, _PAINTED = ("pcmanfm", "gpicview"), ("mtpaint",)
_FREE_ASPECT = keys(*["tab"] * 5, "space", *["shift+tab"] * 5)
"""In the dialog for a new size: its width and height are let go of each other."""
_SAVE_AS_JPEG = keys(*["shift+tab"] * 4, "space", "down", "enter", *["tab"] * 3, "enter")
"""In the image viewer's dialog, from the name: to the format and back to the button."""


def _read_number(rng: np.random.Generator, level: int) -> Setup:
    names = draw(rng, NOUNS, 5 * level)
    numbers = [str(n) for n in rng.choice(np.arange(10_000, 99_999), len(names), replace=False)]
    files = {f"{name}.png": sign(number) for name, number in zip(names, numbers, strict=True)}
    return Setup(
        goal=f"Which number does the picture {names[0]}.png show? Answer with it.",
        oracle=[
            *(OpenApp("pcmanfm"), TypeText(f"{names[0]}.png"), *keys("escape", "enter"), Answer(numbers[0])),
        ],
        files=files,
        answer=numbers[0],
    )


def _turn(rng: np.random.Generator, level: int) -> Setup:
    name = f"{draw(rng, NOUNS, 1)[0]}.png"
    pixels = checks(rng, 6, 6)
    return Setup(
        goal=f"Turn the picture {name} by 90 degrees clockwise and save it under its name.",
        oracle=[
            *(OpenApp("pcmanfm"), TypeText(name), *keys("escape", "enter"), *keys("r", "s", "alt+y")),
        ],
        files={name: png(pixels)},
        milestones={"it is turned": shows(name, np.rot90(pixels, -1))},
        changed=[name],
    )


def _view(name: str) -> list[Action]:
    return [OpenApp("pcmanfm"), TypeText(name), *keys("escape", "enter")]


def _paint(name: str, work: Sequence[Action]) -> list[Action]:
    """Open a picture in mtpaint, work, save it; at first its tool window has the keyboard."""
    open_it = [*keys("ctrl+o", "tab", "tab"), TypeText(name), *keys("enter")]
    return [OpenApp("mtpaint"), *keys("alt+tab"), *open_it, *work, *keys("ctrl+s")]


def _flip(rng: np.random.Generator, level: int) -> Setup:
    name, (way, key) = (
        f"{draw(rng, NOUNS, 1)[0]}.png",
        [("left to right", "h"), ("top to bottom", "v")][level % 2],
    )
    pixels = checks(rng, 5, 7)
    flipped = pixels[:, ::-1] if key == "h" else pixels[::-1]
    turned = np.rot90(flipped, -1) if level == 3 else flipped
    then = " Then turn it by 90 degrees clockwise." if level == 3 else ""
    return Setup(
        goal=f"Mirror the picture {name}, {way}.{then} Save it under its name.",
        oracle=[*_view(name), *keys(key, *(["r"] if level == 3 else []), "s", "alt+y")],
        files={name: png(pixels)},
        milestones={"it is mirrored": shows(name, turned)},
        changed=[name],
    )


def _save_as(rng: np.random.Generator, level: int) -> Setup:
    old, new, *others = draw(rng, NOUNS, 2 + 3 * level)
    pictures = {name: checks(rng, 4, 6) for name in (old, *others)}
    return Setup(
        goal=f"Save the picture {old}.png also as {new}.jpg, in the format JPEG; {old}.png stays.",
        oracle=[*_view(f"{old}.png"), *keys("a"), TypeText(f"{new}.jpg"), *_SAVE_AS_JPEG],
        files={f"{name}.png": png(pixels) for name, pixels in pictures.items()},
        milestones={
            "there is a new file": has(f"{new}.jpg"),
            "it is that picture": shows(f"{new}.jpg", pictures[old], "JPEG"),
        },
        changed=[f"{new}.jpg"],
    )


def _scale(rng: np.random.Generator, level: int) -> Setup:
    name, factor = f"{draw(rng, NOUNS, 1)[0]}.png", level + 1
    pixels = checks(rng, 4, 5)
    large = np.kron(pixels, np.ones((factor, factor, 1), np.uint8))
    width = large.shape[1]
    return Setup(
        goal=f"Scale the picture {name} to a width of {width} pixels, keeping its proportions. Save it "
        "under its name. Paint can do it.",
        oracle=_paint(name, [*keys("page_up"), TypeText(str(width)), *keys("tab", "enter")]),
        files={name: png(pixels)},
        milestones={"it is scaled": shows(name, large, blocks=SIDE * factor)},
        changed=[name],
    )


def _cut(rng: np.random.Generator, level: int) -> Setup:
    name, pixels = f"{draw(rng, NOUNS, 1)[0]}.png", checks(rng, 6, 6)
    width, height = (int(n) for n in rng.integers(40, 80, 2))
    size = [TypeText(str(width)), *keys("tab"), TypeText(str(height))]
    return Setup(
        goal=f"Cut the picture {name} down to its top left part, {width} pixels wide and {height} high. "
        "Save it under its name. Paint's “Resize Canvas” can do it.",
        oracle=_paint(name, [*keys("page_down"), *_FREE_ASPECT, *size, *keys("enter")]),
        files={name: png(pixels)},
        milestones={"it is cut": shows(name, pixels[:height, :width])},
        changed=[name],
    )


def _add_numbers(rng: np.random.Generator, level: int) -> Setup:
    *shown, other = draw(rng, NOUNS, 2 + level)
    numbers = [int(n) for n in rng.integers(100, 9999, len(shown))]
    result, total = f"sum-{rng.integers(10, 100)}.txt", str(sum(numbers))
    files = {f"{name}.png": sign(str(n)) for name, n in zip(shown, numbers, strict=True)}
    said = " and ".join(files)
    return Setup(
        goal=f"Each of the pictures {said} shows a number. Save their sum, digits only, as {result}.",
        oracle=[*(action for name in files for action in _view(name)), *new_text(result, total)],
        files={**files, f"{other}.png": sign(str(rng.integers(100, 9999)))},
        milestones={"the file is there": has(result), "it has the sum": holds(result, total)},
        changed=[result],
    )


def _by_colour(rng: np.random.Generator, level: int) -> Setup:
    colour, *others = draw(rng, list(COLOURS), 4)
    stems = draw(rng, NOUNS, 4 * level)
    wanted = [f"{stem}.png" for stem in stems[: 1 + level]]
    files = {name: patch(rng, colour) for name in wanted}
    files |= {f"{stem}.png": patch(rng, others[int(rng.integers(3))]) for stem in stems[1 + level :]}
    return Setup(
        goal=f"Move the pictures that are {colour} into the folder {colour}, and no others.",
        oracle=[OpenApp("pcmanfm"), *in_terminal(f"mv {' '.join(wanted)} {colour}")],
        files={f"{colour}/": b"", **files},
        milestones={f"{name} is there": has(f"{colour}/{name}", files[name]) for name in wanted}
        | {"none is where it was": lambda tree: all(gone(name)(tree) for name in wanted)},
        changed=[path for name in wanted for path in (name, f"{colour}/{name}")],
    )


TASKS = [
    DesktopTask("picture_read_number", _VIEWED, _read_number),
    DesktopTask("picture_turn", _VIEWED, _turn),
    DesktopTask("picture_flip", _VIEWED, _flip),
    DesktopTask("picture_save_as", _VIEWED, _save_as),
    DesktopTask("picture_scale", _PAINTED, _scale),
    DesktopTask("picture_cut", _PAINTED, _cut),
    DesktopTask("picture_add_numbers", (*_VIEWED, "mousepad"), _add_numbers),
    DesktopTask("picture_by_colour", ("pcmanfm", "xterm"), _by_colour),
]
