"""market.example: what people sell, in one list without an end, each with a page of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Command, Event
from vlrl.envs.gui.emu.sites.dense.images import Photo
from vlrl.envs.gui.emu.sites.site import Fields, left, link, page, paragraph, price, site
from vlrl.envs.gui.emu.widgets import Button, Label, Row, Space, Widget

HOST = "market.example"


@dataclass(frozen=True)
class Listing:
    """Something that is sold; `price` in cents."""

    number: int
    title: str
    town: str
    price: int
    is_saved: bool = False

    @property
    def path(self) -> str:
        """Where its page is."""
        return f"/listing/{self.number}"


STOCK = tuple(
    Listing(101 + index, title, town, 1250 + 330 * index)
    for index, (title, town) in enumerate(
        (("Oak table", "Ely"), ("Child’s bicycle", "Brigg"), ("Record player", "Derby"))
    )
)


def listings(reader: Reader) -> tuple[Listing, ...]:
    """All of them, the newest first."""
    found = reader.data_of("market")
    return found if isinstance(found, tuple) else STOCK


def build(path: str, fields: Mapping[str, Any], reader: Reader) -> Widget | None:
    """The list, or one of them."""
    known = listings(reader)
    if path == "/":
        rows = (
            Row(
                Photo(one.title, 13 * one.number, 40, 30),
                link(f"{HOST}{one.path}", one.title),
                Space(),
                Label(one.town, "small"),
                gap=2,
            )
            for one in known
        )
        return page("Second Hand", Label("Newest first", "muted"), *rows)
    found = next((one for one in known if one.path == path), None)
    if found is None:
        return None
    text = f"{found.title}, little used, to be fetched in {found.town}. No swaps. First come, first served."
    name = "Saved" if found.is_saved else "Save"
    return page(
        found.title,
        Photo(found.title, 13 * found.number, 220, 110),
        Row(Label(price(found.price), "bold"), Label(found.town, "muted"), Space(), gap=3),
        paragraph(text, reader),
        left(Button("save", name, icon="star", pressed=found.is_saved), link(f"{HOST}/", "All listings")),
    )


def handle(path: str, event: Event, fields: Fields, system: System) -> str:
    """Save a listing, or save it no longer."""
    if event == Command("save"):
        known = listings(system)
        turned = (replace(one, is_saved=not one.is_saved) if one.path == path else one for one in known)
        system.keep_for("market", tuple(turned))
    return path


MARKET = site(HOST, "Second Hand", "bag", build, handle, is_dense=True)
