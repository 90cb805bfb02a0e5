"""Tasks with the calculator."""

from __future__ import annotations

from vlrl.envs.gui.emu.apps.calculator import SIGNS, Kept
from vlrl.envs.gui.emu.oracle.intents import Intent, answer, click, key, open_app, type_into, write
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Predicate, Setup, template
from vlrl.envs.gui.emu.tasks.content.words import LINES, STEMS
from vlrl.envs.gui.emu.wording import listed, worded

SAID = {"plus": "plus", "minus": "minus", "times": "times", "divide": "divided by"}


def _keys(number: int) -> list[Intent]:
    return [click(f"key.{digit}") for digit in str(number)]


def _sum(draw: Draw) -> tuple[list[int], list[str], int]:
    """Numbers and the signs between them, worked out from left to right: as many signs as the level says."""
    total = draw.number(12, 89)
    numbers, signs = [total], []
    for _ in range(draw.level):
        sign = draw.pick(tuple(SIGNS))
        least, most = (2, 9) if sign in ("times", "divide") else (11, 99)
        number = draw.number(least, most)
        if (sign == "divide" and total % number) or (sign == "minus" and total < number):
            sign = "plus"
        total = {
            "plus": total + number,
            "minus": total - number,
            "times": total * number,
            "divide": total // number,
        }[sign]
        numbers.append(number)
        signs.append(sign)
    return numbers, signs, total


def _typed(numbers: list[int], signs: list[str]) -> list[Intent]:
    keys = _keys(numbers[0])
    for sign, number in zip(signs, numbers[1:], strict=True):
        keys += [click(f"key.{sign}"), *_keys(number)]
    return [*keys, click("key.equals")]


def _written(numbers: list[int], signs: list[str], names: dict[str, str]) -> str:
    parts = [str(numbers[0])]
    for sign, number in zip(signs, numbers[1:], strict=True):
        parts += [names[sign], str(number)]
    return " ".join(parts)


def _tape(world: World) -> tuple[str, ...]:
    kept: Kept | None = world.store.get("calculator")
    return kept.tape if kept is not None else ()


def _came_out(world: World, number: int) -> bool:
    """Whether this was the last result."""
    return bool(_tape(world)) and _tape(world)[-1].rpartition(" ")[2] == str(number)


def _is_worked_out(numbers: list[int], signs: list[str]) -> Predicate:
    """Whether it was worked out step by step, from left to right; the result alone, typed in, is not that."""
    steps, total = [], numbers[0]
    for sign, number in zip(signs, numbers[1:], strict=True):
        result = {"plus": total + number, "minus": total - number, "times": total * number}.get(sign)
        result = total // number if result is None else result
        steps.append(f"{total} {SIGNS[sign]} {number} = {result}")
        total = result
    return lambda world: _tape(world)[-len(steps) :] == tuple(steps)


@template("calculator/compute", levels=(1, 2, 3))
def compute(draw: Draw) -> Setup:
    """Work something out; the result is to stand there."""
    numbers, signs, _ = _sum(draw)
    opening = [] if draw.level == 1 else [open_app("calculator")]
    return Setup(
        goal=worded(
            "Use the calculator, key by key from left to right: {sum} =",
            sum=_written(numbers, signs, SIGNS),
        ),
        windows=[("calculator", "")] if draw.level == 1 else [],
        milestones={"result": _is_worked_out(numbers, signs)},
        oracle=[*opening, *_typed(numbers, signs)],
    )


@template("calculator/answer", levels=(1, 2, 3))
def say(draw: Draw) -> Setup:
    """Work something out and say it; a desktop's keyboard may be used."""
    numbers, signs, total = _sum(draw)
    signs_typed = {"plus": "+", "minus": "-", "times": "*", "divide": "/"}
    keys = _written(numbers, signs, signs_typed).replace(" ", "") + "="
    by_keys = [write(keys)] if draw.looks["form"] == "desktop" else _typed(numbers, signs)
    said = {sign: worded(name) for sign, name in SAID.items()}
    return Setup(
        goal=worded(
            "What is {sum}, one step after the other? Work it out with the calculator and answer with the "
            "number.",
            sum=_written(numbers, signs, said),
        ),
        windows=[("calculator", "")] if draw.level < 3 else [],
        milestones={"worked out": _is_worked_out(numbers, signs)},
        answer=str(total),
        oracle=[*([open_app("calculator")] if draw.level == 3 else []), *by_keys, answer(str(total))],
    )


@template("calculator/memory", levels=(1, 2, 3))
def memory(draw: Draw) -> Setup:
    """Add numbers to the memory."""
    numbers = draw.picks(range(11, 99), draw.level)
    before = str(draw.number(1, 9))
    total = str(sum(numbers))
    adding = [step for number in numbers for step in (*_keys(number), click("key.memory_add"))]
    return Setup(
        goal=worded(
            "Clear the calculator's memory (MC), then add {numbers} to it (M+).",
            numbers=listed([str(number) for number in numbers]),
        ),
        windows=[("calculator", "")],
        data={"calculator": Kept(before)},
        milestones={
            "memory": lambda world: world.store["calculator"].memory == total,
        },
        changes=["data:calculator/memory"],
        oracle=[click("key.memory_clear"), *adding],
    )


@template("calculator/percent", levels=(1, 2))
def percent(draw: Draw) -> Setup:
    """A share of a price, as an answer."""
    price, share = 20 * draw.number(11, 99), draw.pick((15, 25, 35, 45, 55, 65, 85, 95))
    total = price * share // 100
    keys = [*_keys(price), click("key.times"), *_keys(share), click("key.percent"), click("key.equals")]
    return Setup(
        goal=worded(
            "How much is {share} per cent of {price}? Work it out with the calculator and answer.",
            share=share,
            price=price,
        ),
        windows=[("calculator", "")] if draw.level == 1 else [],
        milestones={"worked out": lambda world: _came_out(world, total)},
        answer=str(total),
        oracle=[*([open_app("calculator")] if draw.level == 2 else []), *keys, answer(str(total))],
    )


@template("calculator/into_file", levels=(1, 2), forms=("desktop",))
def into_file(draw: Draw) -> Setup:
    """Work something out and put the result into a file that is open in the editor."""
    numbers, signs, total = _sum(draw)
    path = f"/Documents/{draw.pick(STEMS)}.txt"
    name = path.rpartition("/")[2]
    return Setup(
        goal=worded(
            "Work out {sum} from left to right with the calculator, then replace all of the text of {file} "
            "by the result and save the file.",
            sum=_written(numbers, signs, SIGNS),
            file=name,
        ),
        files={path: draw.pick(LINES)},
        windows=[("editor", path)],
        milestones={
            "worked out": _is_worked_out(numbers, signs),
            "saved": (2, lambda world: str(world.read(path)).strip() == str(total)),
        },
        changes=[f"file:{path}"],
        oracle=[
            open_app("calculator"),
            *_typed(numbers, signs),
            open_app("editor"),
            type_into("text", str(total)),
            key("ctrl+s"),
        ],
    )
