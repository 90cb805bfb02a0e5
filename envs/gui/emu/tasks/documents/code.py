"""Tasks in the editor of programs: problems, names, definitions. What counts are the files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import partial

from vlrl.envs.gui.emu.files import base
from vlrl.envs.gui.emu.oracle.intents import (
    Intent,
    answer,
    choose,
    click,
    key,
    menu,
    type_into,
    write,
)
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.documents.programs import NOUNS, VERBS, Project, project, slip
from vlrl.envs.gui.emu.wording import listed, worded


def _says(text: object) -> str:
    """A program without blanks at the ends of its lines, and without empty lines at its own."""
    return "\n".join(line.rstrip() for line in str(text).rstrip().split("\n"))


def _is_saved(world: World, path: str, wanted: str) -> bool:
    return _says(world.read(path)) == _says(wanted)


def _is_written(world: World, path: str, wanted: str) -> bool:
    code = world.app("code")
    written = code.changed.get(path) if code is not None else None
    return _is_saved(world, path, wanted) or (written is not None and _says(written) == _says(wanted))


def edited(draw: Draw, goal: str, one: Project, wanted: Mapping[str, str], steps: Sequence[Intent]) -> Setup:
    """A task to change files of a project and save them."""
    milestones = {}
    for path, text in wanted.items():
        milestones[f"{base(path)} written"] = partial(_is_written, path=path, wanted=text)
        milestones[f"{base(path)} saved"] = partial(_is_saved, path=path, wanted=text)
    return Setup(
        goal=goal,
        files=one.files,
        windows=[("code", one.modules[0].path if draw.level == 1 else one.root)],
        milestones=milestones,
        changes=[f"file:{path}" for path in wanted],
        oracle=steps,
    )


def with_texts(one: Project, texts: Mapping[str, str]) -> Project:
    """A project with other texts of some files."""
    modules = (module._replace(text=texts.get(module.path, module.text)) for module in one.modules)
    return one._replace(modules=tuple(modules))


@template("code/fix_line", levels=(1, 2, 3), forms=("desktop",))
def fix_line(draw: Draw) -> Setup:
    """Fix the line that the list of problems names; two of them in two files at level 3."""
    right = project(draw, 1 + draw.level)
    count = 2 if draw.level == 3 else 1
    wrong = list(right.modules[:1] if draw.level == 1 else draw.picks(right.modules[:-1], count))
    wrong.sort(key=lambda module: module.path)  # in the order of the list
    slips = {module.path: slip(draw, module.text) for module in wrong}
    steps: list[Intent] = []
    for module in wrong:
        steps += [click("problem.0"), write(slips[module.path].fixing), key("ctrl+s")]
    lines = "a slip of the pen in one line" if count == 1 else "a slip of the pen in a line of two files each"
    goal = worded(
        f"The list of problems in the app {{app}} shows {lines}: a colon or a bracket is missing there, or "
        "two letters of a name have changed places. Fix it and save.",
        app=tr("Code"),
    )
    broken = with_texts(right, {path: one.text for path, one in slips.items()})
    return edited(draw, goal, broken, {module.path: module.text for module in wrong}, steps)


@template("code/rename_symbol", levels=(1, 2, 3), forms=("desktop",))
def rename_symbol(draw: Draw) -> Setup:
    """Another name for a function wherever it is used in a file; at level 3 also in the file that imports it.

    From level 2 on another name contains the old one, and must stay.
    """
    one = project(draw, draw.level)
    module, old = one.modules[0], one.modules[0].functions[0]
    taken = {name for other in one.modules for name in other.functions}
    new = draw.pick(
        [name for v in VERBS for n in NOUNS if (name := f"{v}_{n}") not in taken and old not in name]
    )
    uses = f"\n\ndef again(values):\n    return {old}(values)\n"
    if draw.level > 1:
        uses += f"\n\ndef {old}_twice(values):\n    return 2 * {old}(values)\n"
    one = with_texts(one, {module.path: module.text + uses})
    paths = [module.path, *([one.modules[-1].path] if draw.level == 3 else [])]
    wanted = {path: re.sub(rf"\b{old}\b", new, one.files[path]) for path in paths}
    steps: list[Intent] = []
    for path in paths:
        steps += [click(f"file.{path}")] if draw.level > 1 else []
        if path == paths[0]:
            steps += [menu("edit", "find"), type_into("query", old), type_into("other", new)]
            steps += [click("words")] if draw.level > 1 else []
        steps += [click("replace_all"), key("ctrl+s")]
    where = "in {file}" + (" and in main.py, which imports it," if draw.level == 3 else "")
    goal = f"In the app {{app}}, rename the function {{old}} to {{new}} everywhere {where} and save."
    goal = worded(goal, app=tr("Code"), old=old, new=new, file=base(module.path))
    if draw.level > 1:
        goal += " " + worded("Leave the function {other} its name.", other=f"{old}_twice")
    return edited(draw, goal, one, wanted, steps)


def _defaults(one: Project) -> list[tuple[str, str, str, str]]:
    """(path, function, parameter, its number where a call gives none) of all functions that have one."""
    pattern = r"def (\w+)\(\w+, (\w+)=(\d+)\)"
    return [(m.path, *found) for m in one.modules for found in re.findall(pattern, m.text)]


def _searched(text: str) -> list[Intent]:
    """How a text is searched for in all files."""
    return [choose("side", "search"), type_into("search", text)]


@template("code/find_definition", levels=(1, 2, 3), forms=("desktop",))
def find_definition(draw: Draw) -> Setup:
    """The line in which a function begins, the file, or what a parameter is where a call gives none."""
    one = project(draw, (1, 4, 5)[draw.level - 1])
    module = draw.pick(one.modules[:-1])
    name = draw.pick(module.functions)
    steps: list[Intent] = []
    parameter = ""
    if draw.level == 1:
        said = str(module.text[: module.text.index(f"def {name}(")].count("\n") + 1)
        asked = "In which line of {file} is the function {name} defined? Answer with the number."
    elif draw.level == 2:
        said, steps = base(module.path), _searched(f"def {name}")
        asked = "In which file of the project is the function {name} defined? Answer with its name."
    else:
        _, name, parameter, said = draw.pick(_defaults(one))
        asked = "Which value has {parameter} in {name} if a call gives none? Answer with the number."
        steps = [*_searched(f"def {name}"), click("match.0")]
    return Setup(
        goal=worded(asked, file=base(module.path), name=name, parameter=parameter),
        files=one.files,
        windows=[("code", module.path if draw.level == 1 else one.root)],
        answer=said,
        oracle=[*steps, answer(said)],
    )


@template("code/change_value", levels=(1, 2, 3), forms=("desktop",))
def change_value(draw: Draw) -> Setup:
    """Another value of a parameter where a call gives none; two at level 3."""
    one = project(draw, 2 + draw.level)
    found = draw.picks(_defaults(one), 2 if draw.level == 3 else 1)
    wanted = one.files
    words, steps = [], []
    for path, name, parameter, old in found:
        new = str((int(old) + draw.number(3, 60)) % 88 + 10)
        before = f"{parameter}={old}"
        at = wanted[path].index(before, wanted[path].index(f"def {name}("))
        wanted[path] = wanted[path][:at] + f"{parameter}={new}" + wanted[path][at + len(before) :]
        change = {"parameter": parameter, "name": name, "old": old, "new": new}
        words.append(worded("of {parameter} in the function {name} from {old} to {new}", **change))
        whole = re.search(rf"def {name}\(.*\)", one.files[path])
        assert whole is not None
        steps += [
            *_searched(whole[0]),
            click("match.0"),
            write(whole[0].replace(before, f"{parameter}={new}")),
        ]
        steps.append(key("ctrl+s"))
    goal = "In the project in the app {app}, change the default {changes}, and save."
    goal = worded(goal, app=tr("Code"), changes=listed(words))
    changed = {path: wanted[path] for path, *_ in found}
    return edited(draw, goal, one, changed, steps)
