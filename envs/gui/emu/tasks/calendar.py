"""Tasks in the calendar: find, add, move, change and delete events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from vlrl.envs.gui.emu.apps.calendar import FIRST_MONTH, HOURS, MONTHS, Appointment
from vlrl.envs.gui.emu.oracle.intents import Intent, answer, choose, click, context, drag, open_app, type_into
from vlrl.envs.gui.emu.records import event_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.content.words import TITLES
from vlrl.envs.gui.emu.wording import listed, worded


def _kept(world: World) -> tuple[Appointment, ...]:
    return world.store.get("calendar") or ()


def _is_added(one: Appointment, num_before: int, world: World) -> bool:
    return one in _kept(world)[num_before:]


def _day(draw: Draw, ahead: int) -> str:
    """A day, so many months after the first."""
    return f"{FIRST_MONTH[0]}-{FIRST_MONTH[1] + ahead:02d}-{draw.number(1, 28):02d}"


def _said(day: str) -> str:
    """Day as people say it."""
    number = "1|of a month" if day[8:] == "01" else ""
    said = worded(number) if number else str(int(day[8:]))
    return worded(f"{{day}} {MONTHS[int(day[5:7]) - 1]} {{year}}", day=said, year=day[:4])


def _events(draw: Draw, count: int, ahead: int) -> list[Appointment]:
    """Appointments with different titles, days and times of one month."""
    month = f"{FIRST_MONTH[0]}-{FIRST_MONTH[1] + ahead:02d}"
    days = [f"{month}-{day:02d}" for day in draw.picks(range(1, 29), count)]
    titles, times = draw.picks(TITLES, count), draw.picks(HOURS, count)
    return [Appointment(*one) for one in zip(days, times, titles, strict=True)]


def _going(ahead: int, draw: Draw) -> tuple[list[tuple[str, str]], list[Intent]]:
    """The calendar is open at level 1; later it has to be opened; months are turned one by one."""
    turns: list[Intent] = [click("next")] * ahead
    return ([("calendar", "")], turns) if draw.level == 1 else ([], [open_app("calendar"), *turns])


def put_in(one: Appointment) -> list[Intent]:
    """How an event is added."""
    fields = [type_into("title", one.title), type_into("day", one.day), choose("time", one.time)]
    return [click("new"), *fields, click("save")]


@template("calendar/add", levels=(1, 2, 3))
def add(draw: Draw) -> Setup:
    """Add an event: this month, next month, or two of them."""
    ahead = draw.level - 1
    wanted = [
        Appointment(_day(draw, ahead), draw.pick(HOURS), title)
        for title in draw.picks(TITLES, 2 if draw.level == 3 else 1)
    ]
    before = tuple(_events(draw, 2 + draw.level, 0))
    windows, _ = _going(0, draw)
    oracle: list[Intent] = [] if draw.level == 1 else [open_app("calendar")]
    for one in wanted:
        oracle += put_in(one)
    said = [
        worded("“{title}” on {date} at {time}", title=one.title, date=_said(one.day), time=one.time)
        for one in wanted
    ]
    return Setup(
        goal=worded("Put {events} into the calendar.", events=listed(said)),
        data={"calendar": before},
        windows=windows,
        milestones={
            **{f"added {index}": partial(_is_added, one, len(before)) for index, one in enumerate(wanted)},
            "nothing else": lambda world: sorted(_kept(world)) == sorted((*before, *wanted)),
        },
        changes=[event_record(one) for one in wanted],
        oracle=oracle,
    )


@template("calendar/delete", levels=(1, 2, 3))
def delete(draw: Draw) -> Setup:
    """Delete an event; at later levels in a later month."""
    ahead = draw.level - 1
    events = _events(draw, 3 + draw.level, ahead)
    gone = draw.pick(events)
    left = tuple(one for one in events if one != gone)
    windows, going = _going(ahead, draw)
    return Setup(
        goal=worded("Delete “{title}” on {date} from the calendar.", title=gone.title, date=_said(gone.day)),
        data={"calendar": tuple(events)},
        windows=windows,
        milestones={"deleted": lambda world: _kept(world) == left},
        over=lambda world: not set(left) <= set(_kept(world)),
        changes=[event_record(gone)],
        oracle=[*going, click(f"day.{gone.day}"), context(f"event.{events.index(gone)}", "delete")],
    )


@template("calendar/move", levels=(1, 2, 3))
def move(draw: Draw) -> Setup:
    """Another day for an event by its form; another time, too, from level 2 on."""
    events = _events(draw, 3 + draw.level, draw.level - 1)
    old = draw.pick(events)
    day = draw.pick([f"{old.day[:8]}{day:02d}" for day in range(1, 29) if f"{day:02d}" != old.day[8:]])
    new = old._replace(day=day)
    if draw.level > 1:
        new = new._replace(time=draw.pick([time for time in HOURS if time != old.time]))
    windows, going = _going(draw.level - 1, draw)
    index = events.index(old)
    after = tuple(new if one == old else one for one in events)
    goal = "Move “{title}” from {date} to {new}" + (" at {time}." if draw.level > 1 else ".")
    return Setup(
        goal=worded(goal, title=old.title, date=_said(old.day), new=_said(day), time=new.time),
        data={"calendar": tuple(events)},
        windows=windows,
        milestones={
            "day": lambda world: any(one.day == day and one.title == old.title for one in _kept(world)),
            "as it should be": lambda world: sorted(_kept(world)) == sorted(after),
        },
        changes=[event_record(old), event_record(new)],
        oracle=[
            *going,
            click(f"day.{old.day}"),
            context(f"event.{index}", "edit"),
            type_into("day", day),
            *([choose("time", new.time)] if draw.level > 1 else []),
            click("save"),
        ],
    )


@template("calendar/drag", levels=(1, 2), forms=("desktop",))
def drag_event(draw: Draw) -> Setup:
    """Move an event to another day; dragging is the shortest way."""
    events = _events(draw, 3 + draw.level, draw.level - 1)
    old = draw.pick(events)
    free = [f"{old.day[:8]}{day:02d}" for day in range(1, 29) if f"{day:02d}" != old.day[8:]]
    new = old._replace(day=draw.pick(free))
    after = tuple(new if one == old else one for one in events)
    windows, going = _going(draw.level - 1, draw)
    return Setup(
        goal=worded(
            "In the calendar, move “{title}” of {date} to {new} (events can be dragged).",
            title=old.title,
            date=_said(old.day),
            new=_said(new.day),
        ),
        data={"calendar": tuple(events)},
        windows=windows,
        milestones={"moved": lambda world: _kept(world) == after},
        changes=[event_record(old), event_record(new)],
        oracle=[*going, click(f"day.{old.day}"), drag(f"event.{events.index(old)}", f"day.{new.day}")],
    )


@template("calendar/rename", levels=(1, 2, 3))
def rename(draw: Draw) -> Setup:
    """Give an event another title."""
    events = _events(draw, 3 + draw.level, draw.level - 1)
    old = draw.pick(events)
    title = draw.pick([title for title in TITLES if title not in {one.title for one in events}])
    after = tuple(one._replace(title=title) if one == old else one for one in events)
    windows, going = _going(draw.level - 1, draw)
    return Setup(
        goal=worded(
            "Change the title of “{title}” on {date} to “{new}”.",
            title=old.title,
            date=_said(old.day),
            new=title,
        ),
        data={"calendar": tuple(events)},
        windows=windows,
        milestones={"changed": lambda world: _kept(world) == after},
        changes=[event_record(old), event_record(old._replace(title=title))],
        oracle=[
            *going,
            click(f"day.{old.day}"),
            context(f"event.{events.index(old)}", "edit"),
            type_into("title", title),
            click("save"),
        ],
    )


def _question(draw: Draw, ask: Callable[[Appointment], tuple[str, str]]) -> Setup:
    """Something about one of the events is to be said; `ask` gives the question and the answer."""
    events = _events(draw, 3 + draw.level, draw.level - 1)
    asked = draw.pick(events)
    question, said = ask(asked)
    windows, going = _going(draw.level - 1, draw)
    return Setup(
        goal=question,
        data={"calendar": tuple(events)},
        windows=windows,
        answer=said,
        oracle=[*going, click(f"day.{asked.day}"), answer(said)],
    )


@template("calendar/when", levels=(1, 2, 3))
def when(draw: Draw) -> Setup:
    """Say at what time something begins."""

    def ask(one: Appointment) -> tuple[str, str]:
        question = "At what time does “{title}” begin on {date}? Answer as in 06:45."
        return worded(question, title=one.title, date=_said(one.day)), one.time

    return _question(draw, ask)


@template("calendar/which", levels=(1, 2, 3))
def which(draw: Draw) -> Setup:
    """Say what is on a day."""

    def ask(one: Appointment) -> tuple[str, str]:
        question = "What is in the calendar on {date}? Answer with the title of the event."
        return worded(question, date=_said(one.day)), one.title

    return _question(draw, ask)
