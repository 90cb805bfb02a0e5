"""Whoever reaches a task's goal and changes anything else has not done it, in the same app or in another."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from vlrl.envs.gui.emu.apps.calculator import Kept as Memory
from vlrl.envs.gui.emu.apps.calendar import Appointment
from vlrl.envs.gui.emu.apps.contacts import Contact
from vlrl.envs.gui.emu.apps.documents.albums import Album
from vlrl.envs.gui.emu.apps.documents.pdf import Bookmark
from vlrl.envs.gui.emu.apps.parts.alarms import Alarm, Kept
from vlrl.envs.gui.emu.apps.parts.canvas import Bitmap, blank, changed, rectangle, stroke
from vlrl.envs.gui.emu.apps.parts.mailbox import WELCOME, Letter
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.files import delete
from vlrl.envs.gui.emu.input.events import Change, Command
from vlrl.envs.gui.emu.records import changed_records
from vlrl.envs.gui.emu.sites.club import Member
from vlrl.envs.gui.emu.sites.dense.market import Listing
from vlrl.envs.gui.emu.sites.dense.power import Account
from vlrl.envs.gui.emu.sites.dense.visits import Visits
from vlrl.envs.gui.emu.sites.fly import Airline, Booking
from vlrl.envs.gui.emu.sites.forum import FIRST, Post, Thread
from vlrl.envs.gui.emu.sites.shop import STOCK, Order, Shop
from vlrl.envs.gui.emu.state import File, World
from vlrl.envs.gui.emu.task import TEMPLATES, Setup, judge
from vlrl.envs.gui.emu.tasks.paint import is_rectangle
from vlrl.envs.gui.emu.update import deliver
from vlrl.envs.gui.screen import Form

UNSEEN = {"number", "is_read", "tape", "timer_from", "watch_ms", "watch_from", "laps", "timer_ms"}
"""Fields that are not a record, or that (of the clock) a task changes itself."""
LETTER = Letter(99, "sent", "stranger@else.example", "Hello", "It was me.", is_read=True)
ORDER = Order((("rake", "red", 1),), "A Stranger", "Nowhere 1", "Else", "express", "card", False)
DAMAGE: Mapping[str, Any] = {
    "mail": (LETTER, *WELCOME),
    "outbox": (LETTER,),
    "clock": Kept((Alarm(333, "Not asked for"),)),
    "contacts": (Contact("A Stranger"),),
    "calendar": (Appointment("2026-03-03", "11:00", "Not asked for"),),
    "photos": (Album("Not asked for", ("/Pictures/x.jpg",)),),
    "pdf": (Bookmark("/Documents/x.pdf", 3),),
    "calculator": Memory("4321"),
    "files": (("/Trash/gone.txt", "/gone.txt"),),
    "browser": ("wiki.example/not-asked-for",),
    "shop": Shop(STOCK, (("rake", "red", 1),), (ORDER,)),
    "fly": Airline((), (Booking("XX 1", "A Stranger", "aisle", False),)),
    "club": (Member("A Stranger", "a@b.example", "password1", 1990, "Egypt", "free"),),
    "forum": (*FIRST, Thread(999, "Garden", "Not asked for", (Post("you", "Hello"),))),
    "market": (Listing(999, "Not asked for", "Ely", 100, True),),
    "power": Account("a.stranger", "password1", is_in=True),
    "web": Visits(subscribed=(("else.example", "a@b.example"),)),
    "ads": ("/offer/1",),
    "dialog.message": "not asked for",
    "board": ("not asked for",),
}
"""App → what it keeps after somebody was there who had no business to."""


def done(name: str, form: Form, level: int, seed: int) -> tuple[Setup, World, World]:
    """A task, the world at its start, and the world after its oracle."""
    desktop = EmuEnv(form=form).backend
    assert isinstance(desktop, Desktop)
    desktop.reset({"name": name, "difficulty": level}, seed)
    while not desktop.verdict().success:
        desktop.perform(desktop.oracle())
    return desktop.setup, desktop.snapshot().initial, desktop.world


def spoilt(value: Any, is_row: bool = False) -> Iterator[Any]:
    """A value with one thing in it changed: every field of every record, or one record less; not of a row."""
    match value:
        case bool():
            yield not value
        case int():
            yield value + 1
        case str():
            yield f"{value} x"
        case Bitmap():
            yield value._replace(pixels=value.pixels[:-1] + bytes([value.pixels[-1] ^ 1]))
        case tuple() if not hasattr(value, "_fields"):
            for at, one in enumerate(value):
                if not is_row:
                    yield value[:at] + value[at + 1 :]
                yield from ((*value[:at], other, *value[at + 1 :]) for other in spoilt(one, True))
        case _ if value is not None:
            names = getattr(value, "_fields", None) or [f.name for f in dataclasses.fields(value)]
            for name in (name for name in names if name not in UNSEEN):
                for other in spoilt(getattr(value, name)):
                    replaced = getattr(value, "_replace", None) or partial(dataclasses.replace, value)
                    yield replaced(**{name: other})


def spoilt_worlds(world: World) -> Iterator[World]:
    files = world.files
    for path in files:
        yield world._replace(files=delete(files, path))
        for other in spoilt(files[path].content):
            yield world._replace(files={**files, path: File(other)})
    yield world._replace(files={**files, "/Documents/not asked for.txt": File("x")})
    for key, value in world.settings.items():
        yield from (world._replace(settings={**world.settings, key: other}) for other in spoilt(value))
    for app, data in world.store.items():
        yield from (world._replace(store={**world.store, app: other}) for other in spoilt(data))
    for app, data in DAMAGE.items():
        yield world._replace(store={**world.store, app: more(world.store.get(app), data)})


def more(data: Any, new: Any) -> Any:
    """What an app keeps, and something new."""
    match data:
        case None | str():
            return new
        case Kept():
            return data._replace(alarms=(*data.alarms, *new.alarms))
        case Memory():
            return data._replace(memory=new.memory)
        case Shop():
            return dataclasses.replace(data, cart=(*data.cart, *new.cart), orders=(*data.orders, *new.orders))
        case Account():
            return dataclasses.replace(data, readings=(*data.readings, 1))
        case Visits():
            return dataclasses.replace(data, subscribed=(*data.subscribed, *new.subscribed))
        case Airline():
            return dataclasses.replace(data, bookings=(*data.bookings, *new.bookings))
        case _:
            return (*data, *new)


def count_changes(name: str, form: Form, level: int) -> int:
    """Change each record of the world in turn after the oracle; none may count as a success."""
    setup, before, after = done(name, form, level, level)
    assert judge(setup, before, after).success
    count = 0
    for world in spoilt_worlds(after):
        names = changed_records(after, world)
        verdict = judge(setup, before, world)
        assert not names or (not verdict.success and verdict.progress < 1), (setup.goal, names, setup.changes)
        count += bool(names)
    return count


@pytest.mark.parametrize("name", sorted(TEMPLATES))
def test_the_goal_and_any_other_change_is_no_success(name: str) -> None:
    form: Form = "desktop" if "desktop" in TEMPLATES[name].forms else "mobile"
    assert count_changes(name, form, TEMPLATES[name].levels[-1]) > 40


@pytest.mark.slow
def test_the_same_at_every_level_on_desktop_and_phone() -> None:
    for name, template in TEMPLATES.items():
        for form in template.forms:
            for level in template.levels:
                assert count_changes(name, form, level) > 40  # type: ignore[arg-type]


def test_what_was_only_looked_at_is_no_change() -> None:
    setup, before, after = done("settings/volume", "desktop", 1, 0)
    read = tuple(dataclasses.replace(letter, is_read=True) for letter in WELCOME)
    looked = {**after.store, "mail": read, "calculator": Memory(tape=("3",)), "clock": Kept()}
    assert judge(setup, before, after._replace(store=looked)).success


def test_a_letter_to_a_stranger_counts_though_it_was_deleted_for_good() -> None:
    setup, before, after = done("mail/star", "desktop", 1, 0)
    world = after
    for event in (Command("new"), Change("to", "a@b.example"), Change("body", "Hi"), Command("send")):
        world = deliver(world, world.windows[-1].number, event)
    for folder in ("sent", "trash"):
        newest = world.store["mail"][0].number
        for event in (Change("folder", folder), Change("letter", newest), Command("delete")):
            world = deliver(world, world.windows[-1].number, event)
    assert set(world.store["mail"]) == set(after.store["mail"])
    verdict = judge(setup, before, world)
    assert not verdict.success and verdict.side_effects == ("data:outbox/to a@b.example: ",)


def test_what_comes_back_to_what_it_was_is_no_change() -> None:
    setup, before, after = done("mail/star", "desktop", 1, 0)
    number = next(one.number for one in after.store["mail"] if not one.is_starred)
    world = deliver(after, after.windows[-1].number, Change("letter", number))
    for id, harm in (("star", 1), ("star", 0), ("move.work", 1), ("move.inbox", 0)):
        world = deliver(world, world.windows[-1].number, Command(id, number))
        assert len(judge(setup, before, world).side_effects) == harm


def test_a_star_in_a_name_allows_nothing_else() -> None:
    before = empty_world()
    after = before._replace(files={**before.files, "/what?.txt": File("x")})
    for allowed, is_done in (("file:/what?.txt", True), ("file:/wh*", True), ("file:/wh*?.txt", False)):
        setup = Setup("", [], {"always": lambda world: True}, changes=[allowed])
        assert judge(setup, before, after).success == is_done


def empty_world() -> World:
    backend = EmuEnv(tasks="desktop/open_app").backend
    assert isinstance(backend, Desktop)
    backend.reset({}, 0)
    return backend.world


CORNERS = [(20, 20), (80, 20), (80, 70), (20, 70), (20, 20)]


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        (CORNERS, True),
        ([(20, 20), (80, 22), (79, 70), (21, 68), (20, 20)], True),  # by hand
        (CORNERS[:4], False),  # three sides
        ([(50, 15), (90, 45), (50, 75), (10, 45), (50, 15)], False),  # a diamond
        ([(30, 20), (70, 20), (80, 30), (80, 60), (70, 70), (30, 70), (20, 60), (20, 30), (30, 20)], False),
        ([*CORNERS, (50, 45), (20, 20)], False),  # with a line through it
    ],
)
def test_a_rectangle_has_four_straight_sides(path: list[tuple[int, int]], is_one: bool) -> None:
    for thick in (1, 3, 6):
        drawn = changed(blank(100, 100), stroke(blank(100, 100), path, 1, thick))
        assert is_rectangle([(x, y) for x, y, _ in drawn]) == is_one


@pytest.mark.parametrize("seed", range(4))
def test_a_frame_touches_no_shape(seed: int) -> None:
    setup, before, after = done("paint/frame", "desktop", 3, seed)
    path = next(change.removeprefix("file:") for change in setup.changes)
    old, new = before.files[path].content, after.files[path].content
    frame = [(x, y) for x, y, _ in changed(old, new)]
    colour = changed(old, new)[0][2]
    left, right = min(x for x, _ in frame), max(x for x, _ in frame)
    top = min(y for _, y in frame)
    columns = [x for x in range(left, right) if any(old.at(x, y) for y in range(top, top + 40))]
    low = next(y for y in range(top, top + 60) if any(old.at(x, y) for x in columns))
    touching = rectangle(old, (left, low - 1), (right, max(y for _, y in frame)), colour, 1)
    for image, success in ((new, True), (touching, False)):
        world = after._replace(files={**after.files, path: File(image)}, windows=())
        assert judge(setup, before, world).success == success


def test_a_result_that_was_only_typed_is_not_worked_out() -> None:
    """ "Key by key" is checked: the tape has the steps."""
    setup, before, after = done("calculator/compute", "desktop", 2, 0)
    assert after.store["calculator"].tape[-1].count(" ") == 4
    typed = Memory(tape=(after.store["calculator"].tape[-1].rpartition(" ")[2],))
    for store in ({"calculator": typed}, {"calculator": Memory(tape=after.store["calculator"].tape[1:])}):
        assert not judge(setup, before, after._replace(store=store)).success
