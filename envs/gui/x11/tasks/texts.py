"""Work on texts that takes more than typing: order, repeats, numbers, several files."""

from __future__ import annotations

import numpy as np

from vlrl.envs.gui.actions import Action, TypeText
from vlrl.envs.gui.x11.task import DesktopTask, Setup
from vlrl.envs.gui.x11.tasks.words import (
    NOUNS,
    draw,
    gone,
    has,
    holds,
    in_terminal,
    keys,
    lines,
    new_text,
    open_in_editor,
    sentence,
    sentences,
)

_EDITOR, _TERMINAL = ("mousepad",), ("xterm",)
_CITIES = ("Lisbon", "Oslo", "Prague", "Quito", "Riga", "Sofia", "Tunis", "Vienna", "Zagreb")
_FIRST = ("Ada", "Boris", "Clara", "David", "Elena", "Farid", "Greta", "Hugo", "Ines", "Jonas")


def _rewrite(goal: str, name: str, before: bytes, after: bytes) -> Setup:
    """A file in the editor, typed over with what it shall be."""
    work: list[Action] = [*keys("ctrl+a"), TypeText(after.decode().rstrip("\n")), *keys("ctrl+s")]
    return Setup(
        goal=f"{goal} Save the file under its name.",
        oracle=[*open_in_editor(name), *work],
        files={name: before},
        milestones={"the file is changed so": holds(name, after.decode())},
        changed=[name],
    )


def _sort_lines(rng: np.random.Generator, level: int) -> Setup:
    name, *items = draw(rng, NOUNS, 1 + 4 * level)
    while items == sorted(items):
        items = draw(rng, items, len(items))
    goal = f"Sort the lines of {name}.txt by the alphabet."
    return _rewrite(goal, f"{name}.txt", lines(items), lines(sorted(items)))


def _remove_repeats(rng: np.random.Generator, level: int) -> Setup:
    name, *items = draw(rng, NOUNS, 1 + 4 * level)
    before = list(items)
    for item in draw(rng, items, 1 + level):
        before.insert(int(rng.integers(before.index(item) + 1, len(before) + 1)), item)
    goal = f"Some lines of {name}.txt are there twice. Keep each of them once, where it comes first."
    return _rewrite(goal, f"{name}.txt", lines(before), lines(items))


def _number_lines(rng: np.random.Generator, level: int) -> Setup:
    name, *items = draw(rng, NOUNS, 1 + 3 * level)
    start = int(rng.integers(1, 50))
    after = lines(f"{number}. {item}" for number, item in enumerate(items, start))
    goal = (
        f"In {name}.txt, put a number, a full stop and a space before each line, counting from {start}: "
        f'the first line becomes "{start}. {items[0]}".'
    )
    return _rewrite(goal, f"{name}.txt", lines(items), after)


def _fill_in(rng: np.random.Generator, level: int) -> Setup:
    name, thing = draw(rng, NOUNS, 2)
    values = {
        "Name": draw(rng, _FIRST, 1)[0],
        "City": draw(rng, _CITIES, 1)[0],
        "Wanted": thing,
        "Number": str(rng.integers(2, 60)),
        "Room": str(rng.integers(100, 400)),
        "Day": f"{rng.integers(1, 29)} May",
    }
    asked = draw(rng, list(values), 2 * level)
    said = ", ".join(f"{key} {values[key]}" for key in asked)
    before = lines(f"{key}: " for key in values)
    after = lines(f"{key}: {values[key] if key in asked else ''}" for key in values)
    goal = f"Fill in the form {name}.txt, each value after the colon and a space: {said}."
    return _rewrite(f"{goal} Leave the rest as it is.", f"{name}.txt", before, after)


def _merge(rng: np.random.Generator, level: int) -> Setup:
    *parts, whole = (f"{noun}.txt" for noun in draw(rng, NOUNS, 2 + level))
    texts = [sentences(rng, 2) for _ in parts]
    every = "".join(lines(text).decode() for text in texts)
    return Setup(
        goal=f"Make a file {whole} that has the text of {', then that of '.join(parts)}.",
        oracle=in_terminal(f"cat {' '.join(parts)} > {whole}"),
        files={part: lines(text) for part, text in zip(parts, texts, strict=True)},
        milestones={"the file is there": has(whole), "it has all of them": holds(whole, every)},
        changed=[whole],
    )


def _keep_lines(rng: np.random.Generator, level: int) -> Setup:
    name, new, wanted = draw(rng, NOUNS, 3)
    texts = [text.replace(wanted, "thing") for text in sentences(rng, 5 * level)]
    for number in rng.choice(len(texts), 1 + level, replace=False):
        texts[number] = f"{texts[number][:-1]}, but not the {wanted}."
    kept = lines(text for text in texts if wanted in text).decode()
    return Setup(
        goal=f"Save those lines of {name}.txt that speak of the {wanted}, in their order, as {new}.txt.",
        oracle=in_terminal(f"grep {wanted} {name}.txt > {new}.txt"),
        files={f"{name}.txt": lines(texts)},
        milestones={"the file is there": has(f"{new}.txt"), "it has the lines": holds(f"{new}.txt", kept)},
        changed=[f"{new}.txt"],
    )


def _total(rng: np.random.Generator, level: int) -> Setup:
    goods = draw(rng, NOUNS, 4 * level)
    prices = [int(n) for n in rng.integers(3, 400, len(goods))]
    counted = [n for n in range(len(goods)) if level < 3 or prices[n] >= 100]
    total, result = str(sum(prices[n] for n in counted)), f"total-{rng.integers(10, 100)}.txt"
    only = " of the goods that cost 100 or more" if level == 3 else ""
    return Setup(
        goal=f"Add up the prices{only} in prices.txt and save the sum, digits only, as {result}.",
        oracle=new_text(result, total),
        files={"prices.txt": lines(f"{good},{price}" for good, price in zip(goods, prices, strict=True))},
        milestones={"the file is there": has(result), "it has the sum": holds(result, total)},
        changed=[result],
    )


def _list_folder(rng: np.random.Generator, level: int) -> Setup:
    folder, new, *stems = draw(rng, NOUNS, 3 + 3 * level)
    inside = sorted(f"{stem}.{draw(rng, ('txt', 'md', 'log'), 1)[0]}" for stem in stems)
    return Setup(
        goal=f"Save a list of the names of the files in the folder {folder} as {new}.txt in the home folder: "
        "one name a line, by the alphabet.",
        oracle=new_text(f"{new}.txt", "\n".join(inside)),
        files={f"{folder}/{name}": lines(sentences(rng, 1)) for name in inside},
        milestones={
            "the file is there": has(f"{new}.txt"),
            "it has the list": holds(f"{new}.txt", "\n".join(inside)),
        },
        changed=[f"{new}.txt"],
    )


def _rename_by_title(rng: np.random.Generator, level: int) -> Setup:
    titles = draw(rng, NOUNS, 1 + level)
    files = {f"scan-{number}.txt": lines([title, sentence(rng)]) for number, title in enumerate(titles, 1)}
    moves = {old: f"{title}.txt" for old, title in zip(files, titles, strict=True)}
    return Setup(
        goal="Rename each file scan-1.txt, scan-2.txt and so on after its first line, and keep the ending: a "
        'file that begins with "lamp" becomes lamp.txt.',
        oracle=in_terminal(*(f"mv {old} {new}" for old, new in moves.items())),
        files=files,
        milestones={f"{old} has its name": has(new, files[old]) for old, new in moves.items()}
        | {"no old name is left": lambda tree: all(gone(old)(tree) for old in moves)},
        changed=[*moves, *moves.values()],
    )


TASKS = [
    DesktopTask("editor_sort_lines", _EDITOR, _sort_lines),
    DesktopTask("editor_remove_repeats", _EDITOR, _remove_repeats),
    DesktopTask("editor_number_lines", _EDITOR, _number_lines),
    DesktopTask("editor_fill_in", _EDITOR, _fill_in),
    DesktopTask("texts_merge", _TERMINAL, _merge),
    DesktopTask("texts_keep_lines", _TERMINAL, _keep_lines),
    DesktopTask("texts_total", _EDITOR, _total),
    DesktopTask("texts_list_folder", _EDITOR, _list_folder),
    DesktopTask("texts_rename_by_title", _TERMINAL, _rename_by_title),
]
