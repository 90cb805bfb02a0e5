"""What lies over pages of the dense web: cookie banners and newsletters, and what their buttons do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Activate, Command, Event
from vlrl.envs.gui.emu.sites.dense.sheet import Overlay, Place
from vlrl.envs.gui.emu.sites.dense.visits import OPTIONAL, allow, put_away, visits_of
from vlrl.envs.gui.emu.sites.site import Fields, Site, paragraph
from vlrl.envs.gui.emu.widgets import Button, ButtonRow, Check, Entry, Label, Row, Space, Widget

OPEN, NEWS_OPEN = "cookies.are_open", "news.is_open"
"""Fields of a page: its cookie settings, its newsletter were asked for."""
EMAIL, NEWS_PROBLEM = "news.email", "news.problem"
ALWAYS_ON = "Necessary (always on)"


def overlay(site: Site, fields: Mapping[str, Any], reader: Reader, is_asked: bool) -> Overlay | None:
    """What lies over a page now: the cookies first."""
    if fields.get(OPEN):
        return cookie_settings(site, fields, reader)
    if visits_of(reader).consent(site.host) is None:
        return cookie_banner(site, reader)
    return newsletter(site, fields, reader) if fields.get(NEWS_OPEN) or is_asked else None


def cookie_banner(site: Site, reader: Reader) -> Overlay:
    """The question, with the buttons that the site has for its answers."""
    kind = visits_of(reader).banner(site.host)
    title = "We value your privacy"
    text = f"{site.title} and its 214 partners use cookies to measure and to advertise."
    accept = Button("cookies.accept", "Accept all", tone="green")
    settings = Button("cookies.choose", "Settings")
    reject = None if kind == "settings" else Button("cookies.reject", "Reject")
    buttons: list[Widget] = [one for one in (accept, reject, settings) if one is not None]
    way_out = "cookies.accept" if reject is None else "cookies.reject"
    at: Place = "middle" if kind == "dialog" else "below"
    words = Label(title, "bold"), paragraph(text, reader)
    return Overlay("cookies", title, at, way_out, *words, Row(*buttons, Space()))


def cookie_settings(site: Site, fields: Mapping[str, Any], reader: Reader) -> Overlay:
    """A box for each kind of cookies; all are checked until somebody answers otherwise."""
    known = visits_of(reader).consent(site.host)
    boxes = [
        Check(f"cookies.{kind}", kind.capitalize(), bool(_is_allowed(kind, fields, known)))
        for kind in OPTIONAL
    ]
    return Overlay(
        "cookies",
        "Cookie settings",
        "middle",
        "cookies.save",
        Label("Cookie settings", "bold"),
        Check("cookies.necessary", ALWAYS_ON, True, enabled=False),
        *boxes,
        ButtonRow(
            Button("cookies.save", "Save choices"), Button("cookies.accept", "Accept all", tone="green")
        ),
    )


def newsletter(site: Site, fields: Mapping[str, Any], reader: Reader) -> Overlay:
    """The newsletter: its field, and two ways out of it."""
    problem = fields.get(NEWS_PROBLEM)
    close = Button("news.close", "Close", kind="flat", icon="close", show_name=False)
    text = f"10 % off, and the best of {site.title} once a week. Leave at any time."
    return Overlay(
        "news",
        "Newsletter",
        "middle",
        "news.close",
        Row(Label("Don’t miss anything!", "bold", grow=1), close),
        paragraph(text, reader),
        Label(f"! {problem}", "bold") if problem else None,
        Entry(EMAIL, "Your e-mail", fields.get(EMAIL, ""), hint="Your e-mail"),
        ButtonRow(Button("news.no", "No, thanks", kind="flat"), Button("news.join", "Subscribe", tone="red")),
    )


def answered(site: Site, event: Event, fields: Fields, system: System) -> bool:
    """Do what a button of an overlay says; whether it was one of these."""
    match event:
        case Command("cookies.open" | "cookies.choose"):
            fields[OPEN] = True
        case Command("cookies.accept"):
            _allow(site, OPTIONAL, fields, system)
        case Command("cookies.reject"):
            _allow(site, (), fields, system)
        case Command("cookies.save"):
            known = visits_of(system).consent(site.host)
            _allow(site, tuple(kind for kind in OPTIONAL if _is_allowed(kind, fields, known)), fields, system)
        case Command("news.open"):
            fields[NEWS_OPEN] = True
        case Command("news.close" | "news.no"):
            fields.pop(NEWS_OPEN, None)
            put_away(system, site.host)
        case Command("news.join") | Activate("news.email"):
            email = str(fields.get(EMAIL, "")).strip()
            name, _, host = email.partition("@")
            is_good = bool(name) and "." in host and " " not in email
            fields[NEWS_PROBLEM] = "" if is_good else "This is no e-mail address."
            if is_good and put_away(system, site.host, email):
                fields.pop(NEWS_OPEN, None)
        case _:
            return False
    return True


def _allow(site: Site, kinds: tuple[str, ...], fields: Fields, system: System) -> None:
    allow(system, site.host, kinds)
    for id in [id for id in fields if id.startswith("cookies.")]:
        del fields[id]


def _is_allowed(kind: str, fields: Mapping[str, Any], known: tuple[str, ...] | None) -> bool:
    return bool(fields.get(f"cookies.{kind}", known is None or kind in known))
