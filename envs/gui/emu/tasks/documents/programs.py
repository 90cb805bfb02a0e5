"""Programs sampled for tasks: small projects, and slips of the pen in them."""

from __future__ import annotations

import re
from typing import NamedTuple

from vlrl.envs.gui.emu.apps.code.lint import problems
from vlrl.envs.gui.emu.task import Draw

BODIES = tuple(
    text.strip("\n") + "\n"
    for text in (
        """
def {f}(items):
    result = 0
    for item in items:
        result = result + item
    return result
""",
        """
def {f}(amount, rate={n}):
    share = amount * rate / 100
    return round(share, 2)
""",
        """
def {f}(names, least={n}):
    found = []
    for name in names:
        if len(name) > least:
            found.append(name)
    return sorted(found)
""",
        """
def {f}(width, height={n}):
    area = width * height
    if area > 900:
        return "large"
    return "small"
""",
        """
def {f}(text):
    longest = ""
    for word in text.split():
        if len(word) > len(longest):
            longest = word
    return longest
""",
        """
def {f}(hours, wage={n}):
    pay = hours * wage
    if hours > 40:
        pay = pay + 50
    return pay
""",
        """
def {f}(values):
    low = min(values)
    high = max(values)
    return high - low
""",
        """
def {f}(pieces, size={n}):
    boxes = pieces // size
    if pieces % size:
        boxes = boxes + 1
    return boxes
""",
    )
)
VERBS = ("count", "find", "sum", "check", "split", "sort", "measure", "collect", "compare", "estimate")
NOUNS = ("orders", "prices", "rooms", "hours", "letters", "parts", "seats", "miles", "guests", "plants")
MODULES = ("shop", "report", "stock", "travel", "garden", "office", "library", "kitchen", "music", "weather")
PROJECTS = ("planner", "ledger", "booking", "survey", "tracker", "catalog")
HOME = "/Documents"


class Module(NamedTuple):
    """A file of a project; `functions` has the names in their order."""

    path: str
    text: str
    functions: tuple[str, ...]


class Project(NamedTuple):
    """A folder of programs; the last module is main.py, which uses a function of each other one."""

    root: str
    modules: tuple[Module, ...]

    @property
    def files(self) -> dict[str, str]:
        """Path → text."""
        return {module.path: module.text for module in self.modules}


def project(draw: Draw, count: int) -> Project:
    """So many modules of three functions, and main.py."""
    root = f"{HOME}/{draw.pick(PROJECTS)}"
    names = draw.picks([f"{verb}_{noun}" for verb in VERBS for noun in NOUNS], 3 * count)
    modules = []
    for at, module in enumerate(draw.picks(MODULES, count)):
        functions = tuple(names[3 * at : 3 * at + 3])
        bodies = (
            body.format(f=name, n=draw.number(11, 98))
            for body, name in zip(draw.picks(BODIES, 3), functions, strict=True)
        )
        text = f'"""Parts for the {module}."""\n\n\n' + "\n\n".join(bodies)
        modules.append(Module(f"{root}/{module}.py", text, functions))
    imports = [f"from {_name(one)} import {one.functions[0]}" for one in modules]
    prints = [f'print("{one.functions[0]}", {one.functions[0]})' for one in modules]
    modules.append(Module(f"{root}/main.py", "\n".join((*imports, "", *prints, "")), ()))
    return Project(root, tuple(modules))


def _name(module: Module) -> str:
    return module.path.rpartition("/")[2].removesuffix(".py")


class Slip(NamedTuple):
    """A slip of the pen.

    Attributes:
        text: of the file that has it.
        fixing: what to type where the list of problems leads to.
    """

    text: str
    fixing: str


def slip(draw: Draw, text: str) -> Slip:
    """A program in which a colon or a bracket is missing, or two letters of a name have changed places."""
    made = draw.pick((_without_colon, _without_bracket, _swapped))(draw, text)
    assert len(problems(made.text)) == 1, made.text
    return made


def _without_colon(draw: Draw, text: str) -> Slip:
    return _without_last(draw, text, ":")


def _without_bracket(draw: Draw, text: str) -> Slip:
    return _without_last(draw, text, ")") if ")\n" in text else _without_last(draw, text, ":")


def _without_last(draw: Draw, text: str, sign: str) -> Slip:
    """The program without a sign at the end of some line."""
    lines = text.split("\n")
    at = draw.pick([n for n, line in enumerate(lines) if line.endswith(sign)])
    lines[at] = lines[at][:-1]
    return Slip("\n".join(lines), sign)


def _swapped(draw: Draw, text: str) -> Slip:
    """A name that is used after "return" or "if", with two letters in the place of each other."""
    places = [match for match in re.finditer(r"(?:return|if) ([a-z]{3,})\b(?!\()", text)]
    if not places:
        return _without_last(draw, text, ":")
    place = draw.pick(places)
    name = place[1]
    at = draw.pick([n for n in range(1, len(name)) if name[n - 1] != name[n]])
    wrong = name[: at - 1] + name[at] + name[at - 1] + name[at + 1 :]
    return Slip(text[: place.start(1)] + wrong + text[place.end(1) :], name)
