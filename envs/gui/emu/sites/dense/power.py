"""power.example: a supplier of electricity, whose customers sign in to see bills and to give readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Activate, Command, Event
from vlrl.envs.gui.emu.sites.site import PROBLEM, Fields, left, link, page, paragraph, price, problem, site
from vlrl.envs.gui.emu.widgets import (
    Button,
    Check,
    Divider,
    Entry,
    Label,
    Row,
    Space,
    Widget,
    field_row,
    section,
)

HOST = "power.example"
WRONG = "The user name or the password is wrong."
LOCKED = "Too many attempts. Your account is locked; please call us."
MOST_TRIES = 5
LEAST_READING, MOST_READING = 1, 999_999


@dataclass(frozen=True)
class Account:
    """The customer, and what is known of them.

    Attributes:
        bills: (month, cents).
        readings: of the meter, the newest last.
        is_in: whether somebody is signed in.
        tries: wrong passwords since the last right one.
    """

    user: str
    password: str
    bills: tuple[tuple[str, int], ...] = ()
    readings: tuple[int, ...] = ()
    is_in: bool = False
    tries: int = 0

    @property
    def is_locked(self) -> bool:
        """Whether nobody can sign in any more."""
        return self.tries >= MOST_TRIES


NOBODY = Account("", "")


def account_of(data: Any) -> Account:
    """The account in what the site keeps."""
    return data if isinstance(data, Account) else NOBODY


def build(path: str, fields: Mapping[str, Any], reader: Reader) -> Widget | None:
    """The front page, the form to sign in, the account."""
    account = account_of(reader.data_of("power"))
    match path:
        case "/":
            text = "Electricity from wind and water, for 310 000 households. Give your reading by the 15th."
            where = ("/account", "My account") if account.is_in else ("/sign-in", "Sign in")
            return page("Northwind Energy", paragraph(text, reader), link(HOST + where[0], where[1]))
        case "/sign-in":
            return _form(fields)
        case "/account":
            return _account(account, fields) if account.is_in else _form(fields)
    return None


def _form(fields: Mapping[str, Any]) -> Widget:
    return page(
        "Sign in",
        problem(fields),
        field_row("User name", Entry("user", "User name", fields.get("user", ""), grow=1)),
        field_row("Password", Entry("password", "Password", fields.get("password", ""), secret=True, grow=1)),
        Check("stay", "Keep me signed in", bool(fields.get("stay"))),
        left(Button("sign_in", "Sign in", kind="primary"), link(f"{HOST}/contact", "Forgot your password?")),
    )


def _account(account: Account, fields: Mapping[str, Any]) -> Widget:
    bills = (Row(Label(month, grow=1), Label(price(cents))) for month, cents in account.bills)
    last = str(account.readings[-1]) if account.readings else "–"
    return page(
        "My account",
        Row(Label(f"Signed in as {account.user}", "muted"), Space(), Button("sign_out", "Sign out")),
        section("Bills", *bills),
        Divider(),
        Label(f"Last reading: {last} kWh"),
        problem(fields),
        field_row("New reading", Entry("reading", "New reading", fields.get("reading", ""), grow=1)),
        left(Button("give", "Send reading", kind="primary")),
    )


def handle(path: str, event: Event, fields: Fields, system: System) -> str:
    """Sign in and out, and take a reading."""
    account = account_of(system.data_of("power"))
    match event:
        case Command("sign_in") | Activate("user" | "password"):
            return _sign_in(account, path, fields, system)
        case Command("sign_out"):
            system.keep_for("power", replace(account, is_in=False))
            return "/"
        case Command("give") | Activate("reading") if account.is_in:
            said = str(fields.get("reading", "")).strip()
            is_good = said.isdecimal() and LEAST_READING <= int(said) <= MOST_READING
            fields[PROBLEM] = "" if is_good else "A reading is a whole number of kWh."
            if is_good:
                fields["reading"] = ""
                system.keep_for("power", replace(account, readings=(*account.readings, int(said))))
    return path


def _sign_in(account: Account, path: str, fields: Fields, system: System) -> str:
    user, password = str(fields.get("user", "")).strip(), str(fields.get("password", ""))
    is_right = (user, password) == (account.user, account.password) and user != ""
    if is_right and not account.is_locked:
        system.keep_for("power", replace(account, is_in=True, tries=0))
        fields.clear()
        return "/account"
    account = replace(account, tries=min(account.tries + 1, MOST_TRIES))
    system.keep_for("power", account)
    fields["password"] = ""
    fields[PROBLEM] = LOCKED if account.is_locked else WRONG
    return path


POWER = site(HOST, "Northwind Energy", "browser", build, handle, is_dense=True)
