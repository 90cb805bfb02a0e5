"""Work in the text editor (mousepad)."""

from __future__ import annotations

import numpy as np

from vlrl.envs.gui.actions import Action, TypeText
from vlrl.envs.gui.x11.task import DesktopTask, Setup
from vlrl.envs.gui.x11.tasks.words import (
    NOUNS,
    draw,
    has,
    holds,
    keys,
    lines,
    new_text,
    open_in_editor,
    sentence,
    sentences,
)

_APPS = ("mousepad",)
_FOREIGN = (
    "Grüße aus Köln",
    "Çok güzel",
    "Привет, мир",
    "Żółta łódź",
    "¿Dónde está?",
    "naïve café",
    "αβγ → δ",
)


def _write(rng: np.random.Generator, text: str) -> Setup:
    name = f"{draw(rng, NOUNS, 1)[0]}.txt"
    return Setup(
        goal=f'With the text editor, make a file named {name} in the home folder that says: "{text}"',
        oracle=new_text(name, text),
        milestones={"the file is there": has(name), "it says so": holds(name, text)},
        changed=[name],
    )


def _note(rng: np.random.Generator, level: int) -> Setup:
    return _write(rng, " ".join(sentences(rng, level)))


def _foreign(rng: np.random.Generator, level: int) -> Setup:
    return _write(rng, " ".join([*draw(rng, _FOREIGN, level), str(rng.integers(10, 100))]))


def _edit(goal: str, name: str, before: str, after: str, work: list[Action]) -> Setup:
    return Setup(
        goal=f"{goal} Save the file under its name.",
        oracle=[*open_in_editor(name), *work, *keys("ctrl+s")],
        files={name: before.encode()},
        milestones={"the file is changed so": holds(name, after)},
        changed=[name],
    )


def _append(rng: np.random.Generator, level: int) -> Setup:
    name, new = f"{draw(rng, NOUNS, 1)[0]}.txt", sentence(rng)
    before = lines(sentences(rng, int(rng.integers(3, 8)) * level)).decode()
    goal = f'Add a last line to {name} that says: "{new}"'
    return _edit(goal, name, before, f"{before}{new}", [*keys("ctrl+end"), TypeText(new)])


def _delete_line(rng: np.random.Generator, level: int) -> Setup:
    name, *items = draw(rng, NOUNS, 2 + 6 * level)
    number = int(rng.integers(1, len(items)))
    after = "\n".join(item for item in items if item != items[number])
    goal = f"In the list in {name}.txt, delete the line {items[number]!r}."
    work = keys("ctrl+home", *["down"] * number, "shift+down", "delete")
    return _edit(goal, f"{name}.txt", "\n".join(items) + "\n", after, work)


def _replace(rng: np.random.Generator, level: int) -> Setup:
    name, old, new, *others = draw(rng, NOUNS, 3 + 3 * level)
    before = "".join(f"The {other} is beside the {old}.\n" for other in others)
    after = before.replace(old, new)
    goal = f"In {name}.txt, replace the word {old!r} by {new!r} everywhere."
    return _edit(goal, f"{name}.txt", before, after, [*keys("ctrl+a"), TypeText(after)])


def _save_as(rng: np.random.Generator, level: int) -> Setup:
    old, new = (f"{noun}.txt" for noun in draw(rng, NOUNS, 2))
    before, title = lines(sentences(rng, 4 * level)).decode(), sentence(rng)
    after = f"{title}\n{before}"
    return Setup(
        goal=f'Open {old}, put the line "{title}" before its first one, and save that as {new}; '
        f"{old} is to stay as it is.",
        oracle=[
            *(*open_in_editor(old), *keys("ctrl+home"), TypeText(f"{title}\n"), *keys("ctrl+shift+s")),
            *(*keys("ctrl+a"), TypeText(new), *keys("enter")),
        ],
        files={old: before.encode()},
        milestones={"there is a new file": has(new), "it says so": holds(new, after)},
        changed=[new],
    )


TASKS = [
    DesktopTask("editor_note", _APPS, _note),
    DesktopTask("editor_foreign", _APPS, _foreign),
    DesktopTask("editor_append", _APPS, _append),
    DesktopTask("editor_delete_line", _APPS, _delete_line),
    DesktopTask("editor_replace", _APPS, _replace),
    DesktopTask("editor_save_as", _APPS, _save_as),
]
