"""Tasks of the paint app: fill, connect, frame, erase. What counts is the image in the file."""

from __future__ import annotations

from collections.abc import Callable, Collection

from vlrl.envs.gui.emu.apps.paint import SIZE
from vlrl.envs.gui.emu.apps.parts.canvas import NUMBERS, Bitmap, blank, changed, filled, region
from vlrl.envs.gui.emu.oracle.intents import Intent, answer, choose, click, key, open_app, stroke, type_into
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.shapes import INKS, KINDS, Shape, drawn, shapes
from vlrl.envs.gui.emu.wording import listed, worded

NAMES = ("shapes", "poster", "sketch", "flag", "pattern", "picture", "draft", "cards")
NEAR = 12
"""Pixels by which a hand may miss."""
WOBBLE = 4
"""Pixels by which a side may be crooked."""


def opened(name: str) -> list[Intent]:
    """How an image is opened from the start."""
    return [open_app("paint"), key("ctrl+o"), type_into("name", name), click("accept")]


def painted(
    draw: Draw, goal: str, image: Bitmap, is_right: Callable[[Bitmap], bool], steps: list[Intent]
) -> Setup:
    """A task to change an image and save it; below level 3 it is open."""
    name = f"{draw.pick(NAMES)}.png"
    path = f"/Pictures/{name}"

    def is_shown(world: World) -> bool:
        paint = world.app("paint")
        return paint is not None and paint.path == path and is_right(paint.image)

    def is_saved(world: World) -> bool:
        now = world.read(path)
        return isinstance(now, Bitmap) and now != image and is_right(now)

    is_open = draw.level < 3
    opening = worded("Open {file} in Pictures with the app {app}.", file=name, app=tr("Paint"))
    return Setup(
        goal=" ".join((*([] if is_open else [opening]), goal, worded("Then save the picture."))),
        files={path: image},
        windows=[("paint", path)] if is_open else [],
        milestones={"painted": lambda world: is_shown(world) or is_saved(world), "saved": is_saved},
        changes=[f"file:{path}"],
        oracle=[*([] if is_open else opened(name)), *steps, key("ctrl+s")],
    )


@template("paint/fill", levels=(1, 2, 3))
def fill(draw: Draw) -> Setup:
    """One to three shapes are to have other colours."""
    found = shapes(draw, 3 + draw.level)
    image = wanted = drawn(found)
    free = [colour for colour in INKS if colour not in {shape.colour for shape in found}]
    words, steps = [], [click("fill")]
    for shape, colour in zip(draw.picks(found, draw.level), draw.picks(free, draw.level), strict=False):
        wanted = filled(wanted, shape.middle, NUMBERS[colour])
        words.append(worded("{shape} with {colour}", shape=shape.words, colour=worded(f"{colour}|noun")))
        steps += [click(f"colour.{colour}"), stroke("canvas", shape.middle)]
    goal = worded("Fill {shapes}.", shapes=listed(words))
    return painted(draw, goal, image, lambda now: now == wanted, steps)


@template("paint/background", levels=(1, 2, 3))
def background(draw: Draw) -> Setup:
    """What is white around the shapes is to have a colour."""
    found = shapes(draw, 1 + draw.level)
    image = drawn(found)
    colour = draw.pick([colour for colour in INKS if colour not in {shape.colour for shape in found}])
    wanted = filled(image, (1, 1), NUMBERS[colour])
    steps = [click("fill"), click(f"colour.{colour}"), stroke("canvas", (1, 1))]
    goal = worded("Make the white background {colour}.", colour=worded(colour))
    return painted(draw, goal, image, lambda now: now == wanted, steps)


@template("paint/connect", levels=(1, 2, 3))
def connect(draw: Draw) -> Setup:
    """A straight line from one spot to another, in a colour."""
    found = shapes(draw, 2 + draw.level, ("disc", "square"))
    a, b = found[:2]
    others = [shape for shape in found[2:] if _distance(shape.middle, a, b) > 60]
    image = drawn([a, b, *others])
    used = {shape.colour for shape in found}
    colour = draw.pick([colour for colour in INKS if colour not in used])

    def is_right(now: Bitmap) -> bool:
        new = changed(image, now)
        places = [(x, y) for x, y, _ in new]
        return (
            all(number == NUMBERS[colour] for _, _, number in new)
            and all(_distance(place, a, b) <= NEAR for place in places)
            and all(any(_reaches(place, shape) for place in places) for shape in (a, b))
            and _is_whole(now, a, b, NUMBERS[colour])
        )

    goal = worded(
        "Draw a straight {colour} line from the middle of {first} to the middle of {second}.",
        colour=worded(f"{colour}|adjective"),
        first=a.words,
        second=b.words,
    )
    steps = [click("line"), click(f"colour.{colour}"), stroke("canvas", a.middle, b.middle)]
    return painted(draw, goal, image, is_right, steps)


def _distance(place: tuple[int, int], a: Shape, b: Shape) -> float:
    """Distance of a place from the line between two shapes' middles, in pixels."""
    (ax, ay), (bx, by) = a.middle, b.middle
    length = (bx - ax) ** 2 + (by - ay) ** 2
    along = ((place[0] - ax) * (bx - ax) + (place[1] - ay) * (by - ay)) / length
    along = min(max(0.0, along), 1.0)
    dx, dy = place[0] - ax - along * (bx - ax), place[1] - ay - along * (by - ay)
    return float((dx * dx + dy * dy) ** 0.5)


def _reaches(place: tuple[int, int], shape: Shape) -> bool:
    return max(abs(place[0] - shape.middle[0]), abs(place[1] - shape.middle[1])) <= NEAR


def _is_whole(image: Bitmap, a: Shape, b: Shape, number: int) -> bool:
    """Whether a line goes all the way: some pixel of its colour near every eighth of it."""
    for n in range(9):
        x = a.middle[0] + (b.middle[0] - a.middle[0]) * n // 8
        y = a.middle[1] + (b.middle[1] - a.middle[1]) * n // 8
        near = [(x + i, y + j) for i in range(-NEAR, NEAR + 1) for j in range(-NEAR, NEAR + 1)]
        if not any(image.has(*place) and image.at(*place) == number for place in near):
            return False
    return True


def is_rectangle(places: Collection[tuple[int, int]]) -> bool:
    """Whether pixels are the four sides of a rectangle, straight and whole, as a hand draws them.

    Of every row and column but the outermost few, the first and the last pixel lie within WOBBLE of the
    outermost ones, and none lies further than NEAR from all four sides.
    """
    edges = [(min(axis), max(axis)) for axis in zip(*places, strict=True)]
    for along in (0, 1):
        lines: dict[int, list[int]] = {}
        for place in places:
            lines.setdefault(place[1 - along], []).append(place[along])
        (first, last), (top, bottom) = edges[along], edges[1 - along]
        for at in range(top + WOBBLE, bottom - WOBBLE + 1):
            line = lines.get(at)
            if line is None or min(line) > first + WOBBLE or max(line) < last - WOBBLE:
                return False
    return all(
        min(abs(at - edge) for at, both in zip(place, edges, strict=True) for edge in both) <= NEAR
        for place in places
    )


def _is_beside(place: tuple[int, int], image: Bitmap) -> bool:
    """Whether a pixel is one of a shape, or touches one."""
    beside = [(place[0] + i, place[1] + j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    return any(image.has(*near) and image.at(*near) for near in beside)


@template("paint/frame", levels=(1, 2, 3))
def frame(draw: Draw) -> Setup:
    """A rectangle around one shape and no other."""
    found = shapes(draw, 2 + draw.level)
    image, shape = drawn(found), found[0]
    colour = draw.pick([colour for colour in INKS if colour not in {other.colour for other in found}])
    x0, y0, x1, y1 = shape.sides

    def is_right(now: Bitmap) -> bool:
        new = changed(image, now)
        if not new or any(number != NUMBERS[colour] for _, _, number in new):
            return False
        outside = region(now, (0, 0)) if not now.at(0, 0) else bytes(len(now.pixels))
        place = (y0 - 2) * now.width + shape.middle[0]  # white, right above the shape
        within = not outside[place] and all(
            outside[(other.sides[1] - 1) * now.width + other.middle[0]] for other in found[1:]
        )
        places = [(x, y) for x, y, _ in new]
        return within and is_rectangle(places) and not any(_is_beside(place, image) for place in places)

    goal = "Draw a {colour} rectangle around {shape} that touches none of the shapes."
    goal = worded(goal, colour=worded(f"{colour}|noun"), shape=shape.words)
    corners = (max(1, x0 - 8), max(1, y0 - 8)), (min(SIZE[0] - 2, x1 + 8), min(SIZE[1] - 2, y1 + 8))
    steps = [click("rectangle"), click(f"colour.{colour}"), stroke("canvas", *corners)]
    return painted(draw, goal, image, is_right, steps)


@template("paint/erase", levels=(1, 2, 3))
def erase(draw: Draw) -> Setup:
    """One or two shapes are to go, the others to stay."""
    found = shapes(draw, 2 + draw.level)
    gone = found[: min(2, draw.level)]
    wanted = drawn(found[len(gone) :])
    steps: list[Intent] = [click("eraser"), choose("thickness", 6)]
    for shape in gone:
        x0, y0, x1, y1 = shape.sides
        steps += [stroke("canvas", (x0, y), (x1, y)) for y in range(y0 + 8, y1 + 12, 22)]
    shown = listed([shape.words for shape in gone])
    goal = worded("Remove {shapes}, so that it is white there.", shapes=shown)
    return painted(draw, goal, drawn(found), lambda now: now == wanted, steps)


@template("paint/save_as", levels=(1, 2))
def save_as(draw: Draw) -> Setup:
    """An image of one colour under a new name; at level 2 another image is open before."""
    colour, name = draw.pick(INKS), f"{draw.pick(INKS)}-{draw.pick(NAMES)}.png"
    old = f"/Pictures/old-{draw.pick(NAMES)}.png"
    wanted = Bitmap(*SIZE, bytes([NUMBERS[colour]]) * (SIZE[0] * SIZE[1]))
    return Setup(
        goal=worded(
            "In the app {app}, make a new picture that is {colour} all over. Save it in Pictures as {file}.",
            app=tr("Paint"),
            colour=worded(colour),
            file=name,
        ),
        files={old: drawn(shapes(draw, 4))},
        windows=[("paint", old)] if draw.level == 2 else [],
        milestones={
            "filled": lambda world: (
                world.read(f"/Pictures/{name}") == wanted
                or ((paint := world.app("paint")) is not None and paint.image == wanted)
            ),
            "saved": lambda world: world.read(f"/Pictures/{name}") == wanted,
        },
        changes=[f"file:/Pictures/{name}"],
        oracle=[
            *([key("ctrl+n")] if draw.level == 2 else [open_app("paint")]),
            click("fill"),
            click(f"colour.{colour}"),
            stroke("canvas", (SIZE[0] // 2, SIZE[1] // 2)),
            key("ctrl+shift+s"),
            type_into("name", name),
            click("accept"),
        ],
    )


@template("paint/question", levels=(1, 2))
def question(draw: Draw) -> Setup:
    """What colour, or how many, in an image that has to be opened."""
    found = shapes(draw, draw.number(3, 6))
    name = f"{draw.pick(NAMES)}.png"
    kind = draw.pick(KINDS)
    alone = [shape for shape in found if [other.kind for other in found].count(shape.kind) == 1]
    other_words: list[str] = []
    if draw.level == 2 or not alone:
        ask, said = f"How many {kind}s are there", str(sum(shape.kind == kind for shape in found))
    else:
        shape = draw.pick(alone)
        ask, said = f"What colour is the {shape.kind}", worded(shape.colour)
        other_words = [shape.colour, tr(shape.colour)]
    return Setup(
        goal=worded(
            f"{ask} in the picture {{file}} in Pictures? (There are discs, squares and wide bars.)", file=name
        ),
        files={f"/Pictures/{name}": drawn(found), "/Pictures/empty.png": blank(*SIZE)},
        answer=said,
        also_right=other_words,
        oracle=[*opened(name), answer(said)],
    )
