"""club.example: a form to become a member, with fields that are checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Command, Event
from vlrl.envs.gui.emu.sites.site import PROBLEM, Fields, left, link, page, paragraph, problem, site
from vlrl.envs.gui.emu.widgets import (
    Button,
    Check,
    Choice,
    Entry,
    Radio,
    Row,
    Widget,
    field_row,
    section,
)

HOST = "club.example"
COUNTRIES = ("Austria", "Brazil", "Canada", "Egypt", "France", "Ghana", "India", "Japan")
PLANS = {"free": "Free", "plus": "Plus", "family": "Family"}
INTERESTS = ("sailing", "chess", "cooking", "music")
LEAST_PASSWORD = 8


@dataclass(frozen=True)
class Member:
    """Who has joined."""

    name: str
    email: str
    password: str
    year: int
    country: str
    plan: str
    interests: tuple[str, ...] = ()
    has_newsletter: bool = False


def members(reader: Reader) -> tuple[Member, ...]:
    """All of them."""
    return tuple(reader.data_of("club") or ())


def build(path: str, fields: Mapping[str, Any], reader: Reader) -> Widget | None:
    """What it is about, the form, a welcome."""
    match path:
        case "/":
            text = "Meet people who like what you like: at sea, at the board, at the stove, on the stage."
            return page("Lighthouse Club", paragraph(text, reader), link(f"{HOST}/join", "Become a member"))
        case "/join":
            return _form(fields)
        case "/welcome" if members(reader):
            text = f"Welcome, {members(reader)[-1].name}. You are a member now."
            return page("Lighthouse Club", paragraph(text, reader), link(f"{HOST}/", "Home"))
    return None


def _form(fields: Mapping[str, Any]) -> Widget:
    def entry(id: str, name: str, secret: bool = False) -> Widget:
        return field_row(name, Entry(id, name, fields.get(id, ""), secret=secret, grow=1))

    countries = (("", "Choose…"), *((name, name) for name in COUNTRIES))
    plans = (Radio("plan", key, name, fields.get("plan", "")) for key, name in PLANS.items())
    likes = (Check(f"likes.{key}", key.capitalize(), bool(fields.get(f"likes.{key}"))) for key in INTERESTS)
    return page(
        "Become a member",
        problem(fields),
        entry("name", "Name"),
        entry("email", "E-mail"),
        entry("password", "Password", True),
        entry("again", "Repeat password", True),
        entry("year", "Year of birth"),
        field_row("Country", Choice("country", "Country", countries, fields.get("country", ""))),
        section("Membership", Row(*plans)),
        section("Interests", Row(*likes)),
        Check("newsletter", "Send me the newsletter", bool(fields.get("newsletter", True))),
        Check("terms", "I accept the rules of the club", bool(fields.get("terms"))),
        left(Button("join", "Join", kind="primary"), Button("clear", "Clear")),
    )


def wrong(fields: Mapping[str, Any]) -> str:
    """What is wrong with the form; "" if nothing is."""
    email, password = str(fields.get("email", "")), str(fields.get("password", ""))
    name, _, host = email.partition("@")
    year = str(fields.get("year", "")).strip()
    checks = {
        "Please fill in your name.": bool(str(fields.get("name", "")).strip()),
        "This is no e-mail address.": bool(name) and "." in host and " " not in email.strip(),
        f"The password needs {LEAST_PASSWORD} characters or more.": len(password) >= LEAST_PASSWORD,
        "The password needs a digit.": any(letter.isdigit() for letter in password),
        "The passwords are not the same.": password == fields.get("again"),
        "The year of birth is from 1900 to 2015.": year.isdecimal() and 1900 <= int(year) <= 2015,
        "Please choose a country.": bool(fields.get("country")),
        "Please choose a membership.": bool(fields.get("plan")),
        "Please accept the rules.": bool(fields.get("terms")),
    }
    return next((text for text, holds in checks.items() if not holds), "")


def handle(path: str, event: Event, fields: Fields, system: System) -> str:
    """Join, or say what is wrong."""
    match event:
        case Command("clear"):
            fields.clear()
        case Command("join"):
            fields[PROBLEM] = wrong(fields)
            if fields[PROBLEM]:
                return path
            member = Member(
                fields["name"].strip(),
                fields["email"].strip(),
                fields["password"],
                int(fields["year"]),
                fields["country"],
                fields["plan"],
                tuple(key for key in INTERESTS if fields.get(f"likes.{key}")),
                bool(fields.get("newsletter", True)),
            )
            return "/welcome" if system.keep_for("club", (*members(system), member)) else path
    return path


CLUB = site(HOST, "Lighthouse Club", "contacts", build, handle)
