"""fly.example: flights to search for, compare and book."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from vlrl.envs.gui.emu.app import Reader, System
from vlrl.envs.gui.emu.input.events import Command, Event
from vlrl.envs.gui.emu.sites.site import PROBLEM, Fields, left, link, page, paragraph, price, problem, site
from vlrl.envs.gui.emu.widgets import (
    Button,
    Check,
    Choice,
    Column,
    Divider,
    Entry,
    Label,
    Radio,
    Row,
    Space,
    Widget,
    field_row,
    section,
    spinner,
)

HOST = "fly.example"
CITIES = ("Athens", "Bergen", "Dakar", "Lisbon", "Malta", "Oslo", "Porto", "Riga")
SEATS = {"window": "Window", "aisle": "Aisle"}
LAST_DAY = 28


@dataclass(frozen=True)
class Flight:
    """One connection; `departs` and `minutes` of the day and of the way, `price` in cents."""

    number: str
    start: str
    end: str
    day: int
    departs: int
    minutes: int
    stops: int
    price: int

    @property
    def times(self) -> str:
        """When it leaves and arrives."""
        return " – ".join(
            f"{t // 60 % 24:02d}:{t % 60:02d}" for t in (self.departs, self.departs + self.minutes)
        )


@dataclass(frozen=True)
class Booking:
    """Who flies, and how."""

    flight: str
    name: str
    seat: str
    has_bag: bool


@dataclass(frozen=True)
class Airline:
    """What flies, and who has booked."""

    flights: tuple[Flight, ...] = ()
    bookings: tuple[Booking, ...] = ()


def airline(reader: Reader) -> Airline:
    """The airline as it is now."""
    found = reader.data_of("fly")
    return found if isinstance(found, Airline) else Airline()


def build(path: str, fields: Mapping[str, Any], reader: Reader) -> Widget | None:
    """The search, what it found, the form of a booking."""
    known = airline(reader)
    match path.split("/")[1:]:
        case [""]:
            return _search(fields)
        case ["from", start, end, day]:
            found = [f for f in known.flights if (f.start, f.end, str(f.day)) == (start, end, day)]
            return _found(f"{start} – {end}, {day} June", found, fields)
        case ["book", number]:
            flight = next((one for one in known.flights if one.number == number), None)
            return None if flight is None else _book(flight, fields)
        case ["booked"] if known.bookings:
            booking = known.bookings[-1]
            text = f"{booking.name} flies with {booking.flight}. Have a good journey!"
            return page("Booked", paragraph(text, reader), link(f"{HOST}/", "Search again"))
    return None


def _search(fields: Mapping[str, Any]) -> Widget:
    cities = (("", "Choose…"), *((city, city) for city in CITIES))
    return page(
        "Albatross Air",
        problem(fields),
        field_row("From", Choice("from", "From", cities, fields.get("from", ""))),
        field_row("To", Choice("to", "To", cities, fields.get("to", ""))),
        field_row("Day in June", spinner("day", "Day", fields.get("day", 1), 1, LAST_DAY)),
        left(Button("search", "Search flights", kind="primary")),
    )


def _found(title: str, flights: list[Flight], fields: Mapping[str, Any]) -> Widget:
    is_direct, order = bool(fields.get("direct")), fields.get("order", "departs")
    orders = (("departs", "Earliest first"), ("price", "Cheapest first"), ("minutes", "Shortest first"))
    shown = sorted(
        (flight for flight in flights if not (is_direct and flight.stops)),
        key=lambda flight: (getattr(flight, order), flight.number),
    )
    rows: list[Widget] = []
    for flight in shown:
        stops = "direct" if not flight.stops else f"{flight.stops} stop" + "s" * (flight.stops > 1)
        way = f"{flight.minutes // 60} h {flight.minutes % 60:02d} min, {stops}"
        text = Column(Label(f"{flight.number}   {flight.times}", "bold"), Label(way, "muted"), gap=0)
        rows += [
            Row(text, Space(), Label(price(flight.price)), Button(f"book.{flight.number}", "Book")),
            Divider(),
        ]
    tools = left(Choice("order", "Order", orders, order), Check("direct", "Direct only", is_direct))
    return page(title, tools, *rows or [Label("There are no flights.")], link(f"{HOST}/", "Search again"))


def _book(flight: Flight, fields: Mapping[str, Any]) -> Widget:
    seats = (Radio("seat", key, name, fields.get("seat", "")) for key, name in SEATS.items())
    return page(
        f"Flight {flight.number}",
        Label(f"{flight.start} – {flight.end}, {flight.day} June, {flight.times}"),
        Label(price(flight.price), "bold"),
        problem(fields),
        field_row("Passenger", Entry("passenger", "Passenger", fields.get("passenger", ""), grow=1)),
        section("Seat", Row(*seats)),
        Check("bag", "With a suitcase", bool(fields.get("bag"))),
        left(Button("pay", "Book and pay", kind="primary")),
    )


def handle(path: str, event: Event, fields: Fields, system: System) -> str:
    """Search, book."""
    match event:
        case Command("search"):
            start, end = fields.get("from"), fields.get("to")
            if start and end and start != end:
                return f"/from/{start}/{end}/{fields.get('day', 1)}"
            fields[PROBLEM] = "Please choose two cities."
        case Command(id) if id.startswith("book."):
            return f"/book/{id.partition('.')[2]}"
        case Command("pay"):
            name, seat = str(fields.get("passenger", "")).strip(), fields.get("seat")
            if not name or not seat:
                fields[PROBLEM] = "Please say who flies, and in which seat."
                return path
            booking = Booking(path.rpartition("/")[2], name, seat, bool(fields.get("bag")))
            known = airline(system)
            booked = replace(known, bookings=(*known.bookings, booking))
            return "/booked" if system.keep_for("fly", booked) else path
    return path


FLY = site(HOST, "Albatross Air", "send", build, handle)
