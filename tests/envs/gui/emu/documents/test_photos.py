"""The photos app: what photos show, and what is done with them."""

from __future__ import annotations

import hashlib
from itertools import product
from typing import Any

import numpy as np
import pytest
from emu_documents import after, desktop_with
from oracle_plays import failures

from vlrl.envs.gui.actions import Click, Key, SystemButton
from vlrl.envs.gui.emu import update
from vlrl.envs.gui.emu.apps.documents.albums import Album
from vlrl.envs.gui.emu.apps.documents.photo_view import ON
from vlrl.envs.gui.emu.apps.documents.scenery import HABITATS, PLACES, THINGS, TIMES, Photo, rendered
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.drawing.theme import TONES
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Reply
from vlrl.envs.gui.emu.task import Draw
from vlrl.envs.gui.emu.tasks.documents.photos import others
from vlrl.seeds import derive_seed

BOAT, TENT, BLURRED = (
    Photo("sea", "day", "boat", "red", 1),
    Photo("meadow", "night", "tent", "blue", 2),
    Photo("city", "day", is_blurred=True),
)
PATHS = ["/Pictures/IMG_1.jpg", "/Pictures/IMG_2.jpg", "/Pictures/IMG_3.jpg"]
NAMES = ["photos/make_album", "photos/rename", "photos/rotate"]
BEHIND = (0, 0, 0)


def opened(argument: str = "", **options: Any) -> Desktop:
    files = dict(zip(PATHS, (BOAT, TENT, BLURRED), strict=True))
    return desktop_with("photos", files, argument, **options)


def middle(desktop: Desktop, role: str, name: str) -> tuple[int, int]:
    found = next(e for e in desktop.elements() if (e.role, e.name) == (role, name))
    return (found.box[0] + found.box[2]) // 2, (found.box[1] + found.box[3]) // 2


def test_a_photo_is_the_same_on_every_machine() -> None:
    digest = hashlib.sha256()
    for index, (place, time, blurred) in enumerate(product(PLACES, TIMES, (False, True))):
        thing = tuple(THINGS)[index % len(THINGS)]
        photo = Photo(place, time, thing, tuple(TONES)[index % 6], index, turns=index % 4, is_blurred=blurred)
        digest.update(rendered(90, 64, photo, BEHIND).tobytes())
    assert digest.hexdigest() == "358ebbebc5806d9738d83c75c8f90c45e5ab88e7dda92e985cfae1749fd855c9"


def test_a_photo_shows_what_it_says() -> None:
    """Every colour, place and time of day changes the image; a turn only turns it; blurred has no edges."""
    seen = {
        rendered(90, 60, Photo(place, time, thing, colour, 7), BEHIND).tobytes()
        for thing, colour, time in product(THINGS, TONES, TIMES)
        for place in HABITATS[thing]
    }
    assert len(seen) == sum(len(TONES) * len(TIMES) * len(places) for places in HABITATS.values())
    upright = rendered(90, 60, BOAT, BEHIND)
    assert np.array_equal(rendered(60, 90, BOAT._replace(turns=1), BEHIND), np.rot90(upright, -1))
    assert np.array_equal(rendered(90, 60, BOAT._replace(turns=2), BEHIND), upright[::-1, ::-1])
    sharp, soft = (
        np.abs(np.diff(rendered(90, 60, BOAT._replace(is_blurred=b), BEHIND).astype(int), axis=1)).max()
        for b in (False, True)
    )
    assert soft * 3 < sharp
    assert rendered(2, 2, BOAT, BEHIND).max() == 0  # no room


def test_photos_are_turned_starred_put_together_and_renamed() -> None:
    world = after(opened().world, Command("mark", PATHS[0]), Command("mark", PATHS[1]))
    world = after(world, Command("rotate_left"), Command("favourite"), Command("new_album"))
    world = after(world, Reply("ok", "x"))  # the dialog is in front: it takes no replies
    world = update.deliver(world, 1, Reply("album", "Trip"))
    assert [world.read(path).turns for path in PATHS] == [3, 3, 0]  # type: ignore[union-attr]
    assert world.store["photos"] == (Album("", (PATHS[0], PATHS[1])), Album("Trip", (PATHS[0], PATHS[1])))
    world = update.deliver(world, 1, Activate("photo", PATHS[0]))
    world = update.deliver(update.deliver(world, 1, Command("rename")), 1, Reply("rename", "IMG_3"))
    assert world.read("/Pictures/IMG_3 (2).jpg") == BOAT._replace(turns=3)  # never over another one
    assert world.store["photos"][1].paths == ("/Pictures/IMG_3 (2).jpg", PATHS[1])
    world = update.deliver(world, 1, Command("favourite"))
    assert world.store["photos"][0].paths == (PATHS[1],)


def test_an_album_shows_its_photos_and_can_go_without_them() -> None:
    world = after(opened().world, Command("mark", PATHS[0]))
    world = update.deliver(update.deliver(world, 1, Command("new_album")), 1, Reply("album", "Trip"))
    world = world._replace(windows=world.windows[:1])
    world = after(world, Command(f"add.Trip{ON}{PATHS[1]}"), Change("shelf", "album:Trip"))
    assert world.store["photos"] == (Album("Trip", (PATHS[0], PATHS[1])),)
    world = after(world, Command("mark", PATHS[0]), Command("take_out"))
    assert world.store["photos"] == (Album("Trip", (PATHS[1],)),)
    world = update.deliver(after(world, Command("delete_album")), 1, Reply("delete_album", "delete"))
    assert world.store["photos"] == () and world.read(PATHS[1]) == TENT


def test_what_is_deleted_lies_in_the_trash_of_files() -> None:
    world = after(opened(PATHS[0]).world, Command("delete"))
    assert world.app("photos").photo == PATHS[1] and world.read("/Trash/IMG_1.jpg") == BOAT
    assert world.store["files"] == (("/Trash/IMG_1.jpg", PATHS[0]),)
    world = after(world, Command("delete"), Command("delete"))
    assert world.app("photos").photo == "" and len(world.store["files"]) == 3


def test_the_large_photo_goes_on_by_keys() -> None:
    desktop = opened()
    desktop.perform(Click(middle(desktop, "gridcell", "IMG_1.jpg")))
    for chord in ("right", "ctrl+r", "left", "ctrl+shift+r", "right"):
        desktop.perform(Key(tuple(chord.split("+"))))
    assert desktop.world.app("photos").photo == PATHS[1]
    assert [desktop.world.read(path).turns for path in PATHS] == [3, 1, 0]  # type: ignore[union-attr]
    desktop.perform(Key(("escape",)))
    assert desktop.world.app("photos").photo == ""


def test_a_phone_goes_back_from_a_photo_and_from_a_selection() -> None:
    desktop = opened(form="mobile")
    desktop.perform(Click(middle(desktop, "gridcell", "IMG_2.jpg")))
    assert desktop.world.app("photos").photo == PATHS[1]
    desktop.perform(SystemButton("back"))
    desktop.perform(Click(middle(desktop, "checkbox", "IMG_2.jpg")))
    assert desktop.world.app("photos").marked == (PATHS[1],)
    desktop.perform(SystemButton("back"))
    state = desktop.world.app("photos")
    assert not state.photo and not state.marked and not desktop.world.windows[-1].is_minimized


def test_no_name_says_what_a_photo_shows() -> None:
    desktop = opened()
    said = " ".join(f"{e.name} {e.value}" for e in desktop.elements()).lower()
    assert not [word for word in (*THINGS, *THINGS.values(), *PLACES, "night") if word in said.split()]
    draw = Draw(np.random.default_rng(derive_seed("photos", 0)), 1, {})
    assert "boat" not in {one.thing for one in others(draw, 40, "boat")}


@pytest.mark.parametrize("family", ["classic", "fluent", "aqua", "adwaita"])
@pytest.mark.parametrize("form", ["desktop", "mobile"])
def test_the_tasks_in_the_largest_letters_on_the_least_screen(form: Any, family: str) -> None:
    looks = {"scale": 125, "font_size": 14, "font": "roman", "language": "de"}
    assert failures(form, NAMES, 2, widgets=family, bar_side="left", **looks) == []
