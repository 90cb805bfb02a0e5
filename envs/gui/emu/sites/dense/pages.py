"""A page of the dense web: a site's content in its furniture, at the stage that it is loaded to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Activate, Command, Event
from vlrl.envs.gui.emu.sites.dense import furniture, overlays
from vlrl.envs.gui.emu.sites.dense.images import Coming, Photo, Skeleton
from vlrl.envs.gui.emu.sites.dense.loading import READY, SKELETON, Loaded
from vlrl.envs.gui.emu.sites.dense.sheet import Document
from vlrl.envs.gui.emu.sites.dense.visits import visits_of
from vlrl.envs.gui.emu.sites.site import Fields, Site
from vlrl.envs.gui.emu.widgets import Column, Divider, Image, Label, Row, Widget

LISTS = ("shop.example/", "forum.example/", "wiki.example/", "market.example/")
"""Pages whose parts come as one scrolls to them."""
COMING = 3
"""Grey rows at the end of a list of which more is to come."""


def is_list(address: str) -> bool:
    """Whether a page's parts come as one scrolls to them."""
    return address in LISTS


def content(site: Site, path: str, fields: Mapping[str, Any], reader: Reader) -> Widget | None:
    """What a page is about; None if there is no such page."""
    return furniture.common_page(site, path, reader) or site.build(path, fields, reader)


def dense_page(
    id: str, main: Column, site: Site, path: str, fields: Mapping[str, Any], reader: Reader, loaded: Loaded
) -> Widget:
    """A page in its furniture, as far as it is loaded."""
    seed = visits_of(reader).seed
    has_images = loaded.stage == READY
    if loaded.stage == SKELETON:
        main = _grey()
    else:
        parts = main.children
        if is_list(site.host + path) and len(parts) > loaded.rows:
            parts = (*parts[: loaded.rows], *(Coming() for _ in range(COMING)))
        if not has_images:
            parts = tuple(_without_images(part) for part in parts)
        else:
            parts = furniture.with_advert(parts, site.host, seed)
        main = Column(*parts, pad=2, gap=2)
    over = None
    if loaded.stage != SKELETON:
        over = overlays.overlay(site, fields, reader, loaded.is_asked)
    head = furniture.head(site, fields, reader, seed, has_images)
    columns = furniture.sides(site, reader, seed, has_images)
    return Document(id, head, main, columns, furniture.foot(site, reader), over)


def has_more(site: Site, path: str, fields: Mapping[str, Any], reader: Reader, rows: int) -> bool:
    """Whether parts of a page are still to come."""
    if not is_list(site.host + path):
        return False
    found = site.build(path, fields, reader)
    return isinstance(found, Column) and len(found.children) > rows


def on_furniture(site: Site, event: Event, fields: Fields, system: System) -> str | None:
    """Where an event of the furniture leads, "" for nowhere else; None if it is the site's own."""
    match event:
        case Command(furniture.FIND) | Activate(furniture.WORDS):
            words = str(fields.get(furniture.WORDS, "")).strip()
            return f"/search/{words}" if words else ""
        case _:
            return "" if overlays.answered(site, event, fields, system) else None


def _grey() -> Column:
    wide = (Skeleton(200, 34), Row(Skeleton(90, 70), Skeleton(150, 70)))
    return Column(Label("Loading…", "muted"), *wide, *(Skeleton() for _ in range(6)), Divider(), pad=2, gap=2)


def _without_images(widget: Widget) -> Widget:
    """A part of a page with grey in the place of its images."""
    if isinstance(widget, Image | Photo):
        return Skeleton(widget.width, widget.height)
    if isinstance(widget, Column):
        widget.children = tuple(_without_images(child) for child in widget.children)
    return widget
