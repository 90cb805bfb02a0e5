"""What a site of the emulated web is: pages that are declared, forms whose fields the browser keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Event
from vlrl.envs.gui.emu.widgets import Column, Label, Link, Row, Space, Widget
from vlrl.envs.gui.emu.widgets.paragraph import Paragraph

Fields: TypeAlias = dict[str, Any]
"""A form's field → what is in it; of one page of one tab."""
PROBLEM = "problem"
"""The field that a page shows as what is wrong with the others."""


@dataclass(frozen=True)
class Site:
    """Pages under one host.

    Attributes:
        build: (path, fields, reader) → the page; None if there is no such page.
        handle: (path, event, fields, system) → the path to be at then. It may change the fields, which are
            forgotten when the path is another.
        is_dense: whether it belongs to the dense web alone.
        is_bare: whether its pages have no furniture there.
    """

    host: str
    title: str
    icon: str
    build: Callable[[str, Mapping[str, Any], Reader], Widget | None]
    handle: Callable[[str, Event, Fields, System], str]
    is_dense: bool = False
    is_bare: bool = False


SITES: dict[str, Site] = {}
"""Every site by its host; its module registers it."""


def site(
    host: str,
    title: str,
    icon: str,
    build: Callable[[str, Mapping[str, Any], Reader], Widget | None],
    handle: Callable[[str, Event, Fields, System], str],
    *,
    is_dense: bool = False,
    is_bare: bool = False,
) -> Site:
    """Make a site known."""
    SITES[host] = Site(host, title, icon, build, handle, is_dense, is_bare)
    return SITES[host]


def link(address: str, text: str) -> Link:
    """A link, by host and path; a page must not have two to one address."""
    return Link(f"go:{address}", text)


def page(title: str, *parts: Widget | None) -> Column:
    """A heading and what is under it."""
    return Column(Label(title, "title"), *parts, pad=2, gap=2)


def paragraph(text: str, reader: Reader) -> Paragraph:
    """Text as wide as a page; narrower where there are columns beside it."""
    size = int(reader.setting("font_size") or 13) * int(reader.setting("scale") or 100)
    room = (reader.world.size[0] - 50) * 1300 // size
    return Paragraph(text, min(room, 310 if reader.setting("pages") == "dense" else 450))


def problem(fields: Mapping[str, Any]) -> Label | None:
    """What is wrong with the form."""
    return Label(f"! {fields[PROBLEM]}", "bold") if fields.get(PROBLEM) else None


def left(*parts: Widget) -> Row:
    """Side by side, as wide as they are."""
    return Row(*parts, Space())


def price(cents: int) -> str:
    """Price as a price list writes it."""
    return f"€{cents // 100}.{cents % 100:02d}"
