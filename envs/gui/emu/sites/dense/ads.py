"""ads.example: where advertisements lead; its button is of no use to anybody's task."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Command, Event
from vlrl.envs.gui.emu.sites.dense.images import ADS_HOST, OFFERS, Photo
from vlrl.envs.gui.emu.sites.site import Fields, left, page, paragraph, site
from vlrl.envs.gui.emu.widgets import Button, Label, Widget


def build(path: str, fields: Mapping[str, Any], reader: Reader) -> Widget | None:
    """An offer."""
    number = path.removeprefix("/offer/")
    if not number.isdecimal() or int(number) >= len(OFFERS):
        return None
    headline, second, call = OFFERS[int(number)]
    text = (
        "Thousands have done it already. Leave your number of the house, and we call you back within a day."
    )
    has_asked = path in (reader.data_of("ads") or ())
    return page(
        headline,
        Photo(headline, 31 * int(number) + 5, 300, 120),
        Label(second, "bold"),
        paragraph(text, reader),
        Label("Thank you! We will call you.") if has_asked else left(Button("claim", call, tone="red")),
    )


def handle(path: str, event: Event, fields: Fields, system: System) -> str:
    """Take the offer."""
    known = tuple(system.data_of("ads") or ())
    if event == Command("claim") and path not in known:
        system.keep_for("ads", (*known, path))
    return path


ADS = site(ADS_HOST, "Offers", "info", build, handle, is_dense=True, is_bare=True)
