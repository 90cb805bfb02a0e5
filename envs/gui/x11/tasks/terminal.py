"""Work in the terminal, and with the calculator."""

from __future__ import annotations

import numpy as np

from vlrl.envs.gui.actions import Answer, OpenApp, TypeText
from vlrl.envs.gui.x11.task import DesktopTask, Setup
from vlrl.envs.gui.x11.tasks.words import NOUNS, draw, gone, has, holds, new_text, sentence


def _count_lines(rng: np.random.Generator, level: int) -> Setup:
    name, (wanted, *others) = draw(rng, NOUNS, 1)[0], draw(rng, NOUNS, 1 + 5 * level)
    count = int(rng.integers(137, 600))
    lines = [wanted] * count + [others[i] for i in rng.integers(len(others), size=400)]
    text = "\n".join(lines[i] for i in rng.permutation(len(lines)))
    return Setup(
        goal=f"How many lines of {name}.txt say {wanted!r}? Answer with the number. The terminal may help.",
        oracle=[
            *(OpenApp("xterm"), TypeText(f"grep -c {wanted} {name}.txt\n"), Answer(str(count))),
        ],
        files={f"{name}.txt": text.encode() + b"\n"},
        answer=str(count),
    )


def _find_file(rng: np.random.Generator, level: int) -> Setup:
    folder, wanted, *names = draw(rng, NOUNS, 8 + 6 * level)
    here = names[int(rng.integers(len(names)))]
    files = {f"{folder}/": b""}
    for name in names:
        files[f"{folder}/{name}.txt"] = f"{sentence(rng)}\n".replace(wanted, "thing").encode()
    files[f"{folder}/{here}.txt"] += f"Here is the {wanted}.\n".encode()
    return Setup(
        goal=f"Which file in the folder {folder} speaks of the {wanted}? Answer with its name.",
        oracle=[OpenApp("xterm"), TypeText(f"grep -l {wanted} {folder}/*\n"), Answer(f"{here}.txt")],
        files=files,
        answer=f"{here}.txt",
    )


def _sort_out(rng: np.random.Generator, level: int) -> Setup:
    folder, *names = draw(rng, NOUNS, 4 + 4 * level)
    logs = [f"{name}.log" for name in names[: 1 + 2 * level]]
    files = {
        name: f"{sentence(rng)}\n".encode() for name in (*logs, *(f"{n}.txt" for n in names[1 + 2 * level :]))
    }
    return Setup(
        goal=f"Make a folder named {folder} and move every file whose name ends in .log into it.",
        oracle=[OpenApp("xterm"), TypeText(f"mkdir {folder}\n"), TypeText(f"mv *.log {folder}\n")],
        files=files,
        milestones={
            "there is the folder": has(folder),
            **{f"{log} is in it": has(f"{folder}/{log}", files[log]) for log in logs},
            "they are where they were no longer": lambda tree: all(gone(log)(tree) for log in logs),
        },
        changed=[folder, f"{folder}/*.log", *logs],
    )


def _calculate(rng: np.random.Generator, level: int) -> Setup:
    a, b, *others = (int(n) for n in rng.integers(123, 9877, size=1 + level))
    result, name = str(a * b - sum(others)), f"{draw(rng, NOUNS, 1)[0]}.txt"
    terms = "".join(f"-{n}" for n in others)
    sum_of = f"{a} × {b}{terms}".replace("-", " − ")
    return Setup(
        goal=f"Compute {sum_of} with the calculator and save the result, digits only, as {name} in the "
        "home folder with the text editor.",
        oracle=[OpenApp("galculator"), TypeText(f"{a}*{b}{terms}\n"), *new_text(name, result)],
        milestones={"the file is there": has(name), "it has the result": holds(name, result)},
        changed=[name],
    )


TASKS = [
    DesktopTask("terminal_count_lines", ("xterm",), _count_lines),
    DesktopTask("terminal_find_file", ("xterm",), _find_file),
    DesktopTask("terminal_sort_out", ("xterm",), _sort_out),
    DesktopTask("calculator_to_file", ("galculator", "mousepad"), _calculate),
]
