"""Tasks with photos: what has to be done depends on what they show, which no file name says."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from vlrl.envs.gui.emu.apps.documents.albums import FAVOURITES, Album, albums_of, paths_in
from vlrl.envs.gui.emu.apps.documents.scenery import HABITATS, THINGS, TIMES, Photo
from vlrl.envs.gui.emu.files import base
from vlrl.envs.gui.emu.oracle.intents import Intent, answer, click, menu, open_app, type_into
from vlrl.envs.gui.emu.records import album_record, trash_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.strings import tr
from vlrl.envs.gui.emu.task import Draw, Setup, template
from vlrl.envs.gui.emu.tasks.files.lookup import is_in_the_trash
from vlrl.envs.gui.emu.wording import worded

HOME = "/Pictures"
ALBUMS = ("Holidays", "Best of", "For Nora", "Calendar", "Postcards", "To print")
INKS = ("red", "green", "blue", "yellow", "purple")
"""Those of `theme.TONES` that are told apart at night, too."""


def photo(draw: Draw, thing: str, colour: str = "", time: str = "") -> Photo:
    """A photo of a thing in one of the places where it may be."""
    place = draw.pick(HABITATS[thing])
    day = f"2026-{draw.number(3, 9):02d}-{draw.number(1, 28):02d}"
    return Photo(place, time or draw.pick(TIMES), thing, colour or draw.pick(INKS), draw.number(0, 9999), day)


def library(draw: Draw, photos: Sequence[Photo]) -> dict[str, Photo]:
    """Path → photo, under numbers as cameras give them; the given ones lie anywhere among the others."""
    number, paths = draw.number(1001, 8000), []
    for _ in photos:
        number += draw.number(1, 9)
        paths.append(f"{HOME}/IMG_{number}.jpg")
    return dict(sorted(zip(draw.picks(paths, len(paths)), photos, strict=True)))


def others(draw: Draw, count: int, but: str) -> list[Photo]:
    """Photos that do not show a thing."""
    things = [thing for thing in THINGS if thing != but]
    return [photo(draw, draw.pick(things)) for _ in range(count)]


def a_photo_of(one: Photo) -> str:
    """What a goal calls what a photo shows, with its colour."""
    if one.thing == "house":
        return worded("a cottage with a {colour} roof", colour=worded(f"{one.colour}|noun"))
    return worded(f"a {{colour}} {THINGS[one.thing]}", colour=worded(f"{one.colour}|noun"))


def setup(draw: Draw, goal: str, before: dict[str, Photo], steps: Sequence[Intent], **rest: object) -> Setup:
    """Set up with the app open, but for level 3."""
    is_open = draw.level < 3
    return Setup(
        goal=goal if is_open else worded("In the app {app}: {goal}", app=tr("Photos"), goal=goal),
        files=before,
        windows=[("photos", "")] if is_open else [],
        oracle=[*([] if is_open else [open_app("photos")]), *steps],
        **rest,  # type: ignore[arg-type]
    )


def mark(paths: Sequence[str]) -> list[Intent]:
    """How photos are selected."""
    return [click(f"mark.{path}") for path in paths]


@template("photos/rotate", levels=(1, 2, 3))
def rotate(draw: Draw) -> Setup:
    """Turn one photo upright that lies on its side or upside down; two at level 3."""
    count = 2 if draw.level == 3 else 1
    found = [photo(draw, draw.pick(tuple(THINGS)), time=draw.pick(("day", "evening"))) for _ in range(8)]
    lying = [one._replace(turns=draw.number(1, 3)) for one in found[:count]]
    before = library(draw, [*lying, *found[count:]])
    wrong = [path for path, one in before.items() if one.turns]
    steps: list[Intent] = []
    for path in wrong:
        turns = before[path].turns
        turn = click("rotate_left" if turns == 1 else "rotate_right")
        steps += [click(f"photo.{path}"), *([turn, turn] if turns == 2 else [turn]), click("close")]
    goal = worded("Not all photos are the right way up. Turn those that are not.")
    if draw.level == 1:
        goal = worded("The photo {file} is not the right way up. Turn it.", file=base(wrong[0]))
    milestones = {
        base(path): partial(_is, path=path, wanted=before[path]._replace(turns=0)) for path in wrong
    }
    return setup(draw, goal, before, steps, milestones=milestones, changes=[f"file:{path}" for path in wrong])


def _is(world: World, path: str, wanted: Photo) -> bool:
    return bool(world.read(path) == wanted)


def _deleting(draw: Draw, goal: str, before: dict[str, Photo], gone: Sequence[str]) -> Setup:
    trashed = [f"/Trash/{base(path)}" for path in gone]
    return setup(
        draw,
        goal,
        before,
        [*mark(gone), click("delete")],
        milestones={base(path): partial(is_in_the_trash, path, before[path]) for path in gone},
        changes=[*(f"file:{path}" for path in (*gone, *trashed)), *map(trash_record, trashed), "file:/Trash"],
    )


@template("photos/delete_kind", levels=(1, 2, 3))
def delete_kind(draw: Draw) -> Setup:
    """Delete the photos that show a thing, as many as the level says; at level 3 those of one colour."""
    thing, (colour, other) = draw.pick(tuple(THINGS)), draw.picks(INKS, 2)
    found = [photo(draw, thing, colour) for _ in range(draw.level)]
    kept = [photo(draw, thing, other) for _ in range(2)] if draw.level == 3 else []
    before = library(draw, [*found, *kept, *others(draw, 8 - len(found) - len(kept), thing)])
    what = a_photo_of(found[0]) if draw.level == 3 else worded(f"a {THINGS[thing]}")
    gone = [path for path, one in before.items() if one in found]
    goal = worded("Delete all photos that show {what} (the trash keeps them).", what=what)
    return _deleting(draw, goal, before, gone)


@template("photos/delete_blurred", levels=(1, 2, 3))
def delete_blurred(draw: Draw) -> Setup:
    """Delete the photos that are out of focus, as many as the level says."""
    found = [photo(draw, draw.pick(tuple(THINGS)), time=draw.pick(("day", "evening"))) for _ in range(9)]
    before = library(draw, [one._replace(is_blurred=n < draw.level) for n, one in enumerate(found)])
    gone = [path for path, one in before.items() if one.is_blurred]
    goal = worded("Delete the photos that are out of focus (the trash keeps them).")
    return _deleting(draw, goal, before, gone)


def _has(world: World, album: str, paths: Sequence[str]) -> bool:
    return set(paths) == set(paths_in(albums_of(world.store.get("photos")), album))


def _begun(world: World, album: str, before: Sequence[str], paths: Sequence[str]) -> bool:
    """Whether some of the photos are in an album, and none that has no business there."""
    now = set(paths_in(albums_of(world.store.get("photos")), album))
    return set(before) < now <= set(paths)


def _collecting(
    draw: Draw,
    goal: str,
    before: dict[str, Photo],
    album: str,
    found: Sequence[str],
    steps: list[Intent],
    old: Sequence[str] = (),
) -> Setup:
    """Put photos into an album, which has some already."""
    wanted = [*old, *found]
    return setup(
        draw,
        goal,
        before,
        [*mark(found), *steps],
        data={"photos": (Album(album, tuple(old)),)} if old else {},
        milestones={
            "begun": partial(_begun, album=album, before=old, paths=wanted),
            "all": (2, partial(_has, album=album, paths=wanted)),
        },
        changes=[album_record(album), *(album_record(album, path) for path in found)],
    )


@template("photos/favourite", levels=(1, 2, 3))
def favourite(draw: Draw) -> Setup:
    """Make favourites of one photo by its thing, or of all that were taken at night; some are by level 3."""
    night = [photo(draw, thing, time="night") for thing in draw.picks(tuple(THINGS), 1 + draw.level)]
    day = [photo(draw, draw.pick(tuple(THINGS)), time="day") for _ in range(6)]
    goal, wanted = "Make all photos that were taken at night favourites.", night
    if draw.level == 1:
        one = photo(draw, "boat")
        day = [other for other in day if other.thing != "boat"]
        day, wanted, goal = [*day, one], [one], "Make the photo that shows a boat a favourite."
        night = [other for other in night if other.thing != "boat"]
    before = library(draw, [*night, *day])
    paths = [path for path, one in before.items() if one in wanted]
    old = paths[:1] if draw.level == 3 else []
    new = [path for path in paths if path not in old]
    return _collecting(draw, worded(goal), before, FAVOURITES, new, [click("favourite")], old)


@template("photos/make_album", levels=(1, 2, 3))
def make_album(draw: Draw) -> Setup:
    """A new album with all photos of a thing; at level 3 with those of an evening."""
    thing, album = draw.pick(tuple(THINGS)), draw.pick(ALBUMS)
    count = 1 + draw.level
    if draw.level == 3:
        found = [photo(draw, draw.pick(tuple(THINGS)), time="evening") for _ in range(3)]
        rest = [photo(draw, draw.pick(tuple(THINGS)), time=draw.pick(("day", "night"))) for _ in range(6)]
        what = "that were taken in the evening, at sunset"
    else:
        found, what = [photo(draw, thing) for _ in range(count)], "that show {what}"
        rest = others(draw, 8 - count, thing)
    before = library(draw, [*found, *rest])
    paths = [path for path, one in before.items() if one in found]
    steps = [click("new_album"), type_into("value", album), click("ok")]
    goal = f"Make an album “{{album}}” with all photos {what}."
    goal = worded(goal, album=album, what=worded(f"a {THINGS[thing]}"))
    return _collecting(draw, goal, before, album, paths, steps)


@template("photos/add_to_album", levels=(1, 2, 3))
def add_to_album(draw: Draw) -> Setup:
    """Add the photos of a thing to an album that has some already."""
    thing, album = draw.pick(tuple(THINGS)), draw.pick(ALBUMS)
    found = [photo(draw, thing) for _ in range(draw.level)]
    before = library(draw, [*found, *others(draw, 8 - draw.level, thing)])
    paths = [path for path, one in before.items() if one in found]
    old = draw.picks([path for path in before if path not in paths], 2)
    every = "the photo that shows" if draw.level == 1 else "all photos that show"
    goal = f"Add {every} {{what}} to the album “{{album}}”."
    goal = worded(goal, what=worded(f"a {THINGS[thing]}"), album=album)
    return _collecting(draw, goal, before, album, paths, [menu("photo", f"add.{album}")], old)


@template("photos/rename", levels=(1, 2, 3))
def rename(draw: Draw) -> Setup:
    """Give the one photo of a thing another name; from level 2 on the colour says which."""
    thing, (colour, other) = draw.pick(tuple(THINGS)), draw.picks(INKS, 2)
    found = photo(draw, thing, colour)
    more = [photo(draw, thing, other)] if draw.level > 1 else []
    before = library(draw, [found, *more, *others(draw, 4 + 2 * draw.level, thing)])
    old = next(path for path, one in before.items() if one == found)
    name = f"{draw.pick(('summer', 'cover', 'postcard', 'poster', 'card', 'flyer'))}-{draw.number(1, 9)}.jpg"
    new = f"{HOME}/{name}"
    what = a_photo_of(found) if more else worded(f"a {THINGS[thing]}")
    return setup(
        draw,
        worded("Rename the photo that shows {what} to {name}.", what=what, name=name),
        before,
        [*mark([old]), menu("photo", "rename"), type_into("value", name), click("ok")],
        milestones={"renamed": lambda world: world.read(new) == found and old not in world.files},
        changes=[f"file:{old}", f"file:{new}"],
    )


@template("photos/question", levels=(1, 2, 3))
def question(draw: Draw) -> Setup:
    """What colour something has, how many photos show it, or when the one of a colour was taken."""
    thing, (colour, other) = draw.pick(tuple(THINGS)), draw.picks(INKS, 2)
    count = draw.number(2, 4) if draw.level == 2 else 1
    found = [photo(draw, thing, colour) for _ in range(count)]
    more = [photo(draw, thing, other)] if draw.level == 3 else []
    before = library(draw, [*found, *more, *others(draw, 7, thing)])
    path = next(path for path, one in before.items() if one in found)
    part = "roof of the cottage" if thing == "house" else THINGS[thing]
    asked, said = {
        1: ("What colour is the {part} in the photo {file}?", worded(colour)),
        2: ("How many photos show {what}? Answer with the number.", str(count)),
        3: (
            "When was the photo taken that shows {what}? Answer with the date that the app shows.",
            found[0].taken,
        ),
    }[draw.level]
    what = a_photo_of(found[0]) if draw.level == 3 else worded(f"a {THINGS[thing]}")
    asked = worded(asked, part=worded(f"{part}|of a photo"), file=base(path), what=what)
    looking: list[Intent] = [] if draw.level == 2 else [click(f"photo.{path}")]
    other_words = [colour, tr(colour)] if draw.level == 1 else []
    return setup(draw, asked, before, [*looking, answer(said)], answer=said, also_right=other_words)
