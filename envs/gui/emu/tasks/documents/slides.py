"""Tasks with slides: titles, points, order, what they say. What counts is the file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from vlrl.envs.gui.emu.apps.documents.deck import DESIGNS, Deck, Slide
from vlrl.envs.gui.emu.oracle.intents import (
    Intent,
    answer,
    click,
    context,
    key,
    menu,
    open_app,
    type_into,
    write,
)
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.wording import listed, quoted, worded

TOPICS = {
    "Budget": ("Stage and lights: {} euros", "Food: {} euros", "Printing: {} euros", "Left over: {} euros"),
    "Volunteers": ("{} people at the gate", "{} people in the kitchen", "{} drivers", "{} people clean up"),
    "Timetable": (
        "Doors open at {}:00",
        "Speeches: {} minutes",
        "Break after {} minutes",
        "Music from {}:30",
    ),
    "Visitors": ("Last year: {}", "This year: {}", "By train: {}", "Children: {}"),
    "Risks": ("Rain: {} tents", "Power: {} spare cables", "{} first-aid boxes", "Phone: ring {}"),
    "Rooms": ("Hall A has {} seats", "Hall B has {} seats", "{} chairs are missing", "The cellar: {} boxes"),
    "Food": ("{} kilos of potatoes", "{} loaves of bread", "{} litres of soup", "Cake for {}"),
    "Music": ("{} bands play", "{} microphones", "The choir has {} singers", "Sound check at {}:15"),
    "Press": ("{} newspapers", "{} posters", "Radio at {}:45", "{} leaflets"),
    "Travel": ("Bus {} stops here", "{} parking places", "{} bicycles to lend", "Ferry at {}:10"),
}
TITLES = (
    "Overview",
    "Next steps",
    "What we need",
    "Plan B",
    "Who does what",
    "Numbers",
    "Results",
    "Open questions",
)
NEW_POINTS = (
    "Ask the mayor",
    "Order early",
    "Call the printer",
    "Book the hall",
    "Thank everybody",
    "Check the weather",
    "Buy batteries",
    "Invite the school",
)
NAMES = ("festival", "meeting", "spring-fair", "anniversary", "open-day", "concert", "workshop", "tour")


class Given(NamedTuple):
    """A presentation sampled for a task."""

    path: str
    slides: tuple[Slide, ...]
    design: str

    @property
    def file(self) -> str:
        """Name of its file."""
        return self.path.rpartition("/")[2]

    def place(self, title: str) -> int:
        """Place of the slide with a title."""
        return [slide.title for slide in self.slides].index(title)


def presentation(draw: Draw, count: int) -> Given:
    """So many slides with two or three points each, after a first one."""
    name = draw.pick(NAMES)
    slides = [Slide(name.replace("-", " ").capitalize(), (f"Planning group {draw.number(2, 9)}",))]
    for topic in draw.picks(tuple(TOPICS), count):
        points = draw.picks(TOPICS[topic], draw.number(2, 3))
        slides.append(Slide(topic, tuple(point.format(draw.number(11, 59)) for point in points)))
    return Given(f"/Documents/{name}.odp", tuple(slides), draw.pick(tuple(DESIGNS)))


def plain(deck: object) -> object:
    """A deck without blanks around texts and without empty points."""
    if not isinstance(deck, Deck):
        return deck
    return deck._replace(
        slides=tuple(
            Slide(one.title.strip(), tuple(p.strip() for p in one.points if p.strip()), one.notes.strip())
            for one in deck.slides
        )
    )


def edited(draw: Draw, given: Given, goal: str, slides: Sequence[Slide], steps: Sequence[Intent]) -> Setup:
    """A task to change slides and save them; at level 3 the file is to be opened first."""
    wanted = Deck(tuple(slides), given.design)

    def is_saved(world: World) -> bool:
        return plain(world.read(given.path)) == wanted

    def is_changed(world: World) -> bool:
        app = world.app("slides")
        return is_saved(world) or (
            app is not None and app.path == given.path and plain(app.content) == wanted
        )

    is_open = draw.level < 3
    return Setup(
        goal=f"{goal if is_open else after_opening(given, goal)} {worded('Then save the presentation.')}",
        files={given.path: Deck(given.slides, given.design)},
        windows=[("slides", given.path)] if is_open else [],
        milestones={"changed": is_changed, "saved": is_saved},
        changes=[f"file:{given.path}"],
        oracle=[*([] if is_open else opened(given.file)), *steps, key("ctrl+s")],
    )


def after_opening(given: Given, goal: str) -> str:
    """A goal after that to open the file."""
    opening = worded("Open {file} in Documents with the app {app}.", file=given.file, app=tr("Slides"))
    return f"{opening} {goal}"


def opened(file: str) -> list[Intent]:
    """How a presentation is opened from the start."""
    return [open_app("slides"), key("ctrl+o"), type_into("name", file), click("accept")]


def chosen(place: int) -> Intent:
    """How a slide is chosen; its key is its place in the file."""
    return click(f"slide.{place}")


def called(draw: Draw, given: Given, place: int) -> tuple[str, object]:
    """What a goal calls a slide, by its title, its number, or what stands on it, as the level says.

    Returns:
        The words around {slide}, and what stands for that.
    """
    slide = given.slides[place]
    if draw.level == 1:
        return "the slide “{slide}”", slide.title
    if draw.level == 2:
        return "slide {slide}", place + 1
    return "the slide that says “{slide}”", draw.pick(slide.points)


@template("slides/retitle", levels=(1, 2, 3), forms=("desktop",))
def retitle(draw: Draw) -> Setup:
    """Another title for one slide."""
    given = presentation(draw, 3 + draw.level)
    place, title = draw.number(1, len(given.slides) - 1), draw.pick(TITLES)
    slides = list(given.slides)
    slides[place] = slides[place]._replace(title=title)
    steps = [chosen(place), type_into(f"title.{place}", title)]
    words, slide = called(draw, given, place)
    goal = worded(f"Change the title of {words} to “{{title}}”.", slide=slide, title=title)
    return edited(draw, given, goal, slides, steps)


@template("slides/add_point", levels=(1, 2, 3), forms=("desktop",))
def add_point(draw: Draw) -> Setup:
    """One more point at the end of a slide."""
    given = presentation(draw, 3 + draw.level)
    place, new = draw.number(1, len(given.slides) - 1), draw.pick(NEW_POINTS)
    slides = list(given.slides)
    slides[place] = slides[place]._replace(points=(*slides[place].points, new))
    steps = [chosen(place), click(f"points.{place}"), key("ctrl+end"), write(f"\n{new}")]
    words, slide = called(draw, given, place)
    goal = worded(f"Add “{{point}}” as the last point of {words}.", point=new, slide=slide)
    return edited(draw, given, goal, slides, steps)


@template("slides/new_slide", levels=(1, 2, 3), forms=("desktop",))
def new_slide(draw: Draw) -> Setup:
    """A new slide with a title and points: the last one, or after another one."""
    given = presentation(draw, 2 + draw.level)
    title, points = draw.pick(TITLES), tuple(draw.picks(NEW_POINTS, min(2, draw.level)))
    last = len(given.slides) - 1
    place = last if draw.level == 1 else draw.number(1, last - 1)
    where = "at the end" if place == last else "right after “{after}”"
    slides = [*given.slides[: place + 1], Slide(title, points), *given.slides[place + 1 :]]
    new = len(given.slides)
    steps = [
        chosen(place),
        menu("slide", "new_slide"),
        type_into(f"title.{new}", title),
        click(f"points.{new}"),
        write("\n".join(points)),
    ]
    goal = (
        f"Add a slide {where} with the title “{{title}}” and the point{'s' * (len(points) > 1)} {{points}}."
    )
    said = listed([quoted(point) for point in points])
    goal = worded(goal, after=given.slides[place].title, title=title, points=said)
    return edited(draw, given, goal, slides, steps)


@template("slides/delete_slide", levels=(1, 2, 3), forms=("desktop",))
def delete_slide(draw: Draw) -> Setup:
    """Delete one slide by its title or number; at level 3 all that have no points."""
    given = presentation(draw, 4 + draw.level)
    gone = sorted(draw.picks(range(1, len(given.slides)), 2 if draw.level == 3 else 1))
    words, slide = called(draw, given, gone[0])
    goal = worded(f"Delete {words}.", slide=slide) if draw.level < 3 else ""
    if draw.level == 3:
        empty = [one._replace(points=()) if n in gone else one for n, one in enumerate(given.slides)]
        given = given._replace(slides=tuple(empty))
        goal = worded("Delete all slides that have a title and nothing else.")
    slides = [slide for n, slide in enumerate(given.slides) if n not in gone]
    return edited(draw, given, goal, slides, [context(f"slide.{place}", "delete") for place in gone])


@template("slides/reorder", levels=(1, 2, 3), forms=("desktop",))
def reorder(draw: Draw) -> Setup:
    """Put one slide right after another one; at level 3 put numbered slides into their order."""
    given = presentation(draw, 3 + draw.level)
    places = list(range(len(given.slides)))
    steps: list[Intent] = []
    if draw.level < 3:
        place = draw.number(1, len(places) - 1)
        after = draw.pick([other for other in places if other not in (place, place - 1)])
        places.remove(place)
        places.insert(places.index(after) + 1, place)
        names = {"title": given.slides[place].title, "after": given.slides[after].title}
        goal = worded("Move the slide “{title}” right after “{after}”.", **names)
        steps = _carried(place, place, places.index(place))
    else:
        order = _mixed(draw, len(places) - 1)
        slides = [
            one if not n else one._replace(title=f"{order[n - 1]}. {one.title}")
            for n, one in enumerate(given.slides)
        ]
        given = given._replace(slides=tuple(slides))
        now, places = places, [0, *(1 + order.index(number) for number in range(1, len(places)))]
        goal = worded("Put the slides with a number in their title into the order of these numbers.")
        for to, place in enumerate(places):
            steps += _carried(place, now.index(place), to)
            now.remove(place)
            now.insert(to, place)
    return edited(draw, given, goal, [given.slides[place] for place in places], steps)


def _mixed(draw: Draw, count: int) -> list[int]:
    """The numbers from 1 on, of which two at most are out of their order."""
    order = list(range(1, count + 1))
    for number in draw.picks(order, 2):
        order.remove(number)
        order.insert(draw.number(0, len(order)), number)
    return order if order != sorted(order) else [*order[1:], 1]


def _carried(key_of: int, start: int, end: int) -> list[Intent]:
    """How a slide is moved from a place to another, step by step."""
    chord = f"ctrl+shift+{'down' if end > start else 'up'}"
    return [chosen(key_of), *(key(chord) for _ in range(abs(end - start)))] if end != start else []


@template("slides/look_up", levels=(1, 2, 3), forms=("desktop",))
def look_up(draw: Draw) -> Setup:
    """A point of a slide, a number in its notes; at level 3 the title of the slide that says something."""
    given = presentation(draw, 5 + draw.level)
    place = draw.number(1, len(given.slides) - 1)
    slide = given.slides[place]
    room = str(draw.number(101, 989))
    if draw.level == 2:
        noted = slide._replace(notes=f"The key is in room {room}.")
        slides = [noted if n == place else one for n, one in enumerate(given.slides)]
        given = given._replace(slides=tuple(slides))
    at = draw.number(0, len(slide.points) - 1)
    order = ("first", "second", "third")[at]
    asked, said = {
        1: (f"What is the {order} point of the slide “{{title}}”? Answer with its text.", slide.points[at]),
        2: ("In which room is the key, by the notes of “{title}”? Answer with the number.", room),
        3: ("Which slide says “{point}”? Answer with its title.", slide.title),
    }[draw.level]
    goal = worded(asked, title=slide.title, point=slide.points[at])
    looking = range(1, place + 1) if draw.level == 3 else (place,)
    is_open = draw.level < 3
    return Setup(
        goal=goal if is_open else after_opening(given, goal),
        files={given.path: Deck(given.slides, given.design)},
        windows=[("slides", given.path)] if is_open else [],
        answer=said,
        oracle=[*([] if is_open else opened(given.file)), *map(chosen, looking), answer(said)],
    )
