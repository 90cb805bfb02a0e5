"""What a desktop holds, record by record: files, settings, and by name each letter, alarm or line of a cart.

A task says by these names what may change; whatever else changes is a side effect. What leaves no trace that
matters is not a record: that a letter was read or a notice dismissed, the calculator's tape, when a file was
written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from vlrl.envs.gui.emu.apps import calculator
from vlrl.envs.gui.emu.apps.calendar import Appointment
from vlrl.envs.gui.emu.apps.contacts import people
from vlrl.envs.gui.emu.apps.documents.albums import albums_of
from vlrl.envs.gui.emu.apps.parts.alarms import Alarm, kept
from vlrl.envs.gui.emu.apps.parts.mailbox import letters_of
from vlrl.envs.gui.emu.sites import fly, forum, market, power, shop
from vlrl.envs.gui.emu.sites.dense.visits import Visits
from vlrl.envs.gui.emu.state import World

READINGS = "data:power/readings"
"""What was given to the supplier of electricity."""
Named: TypeAlias = Iterable[tuple[str, Any]]
"""(name within the app, value); several values under one name differ by their number."""


def changed_records(before: World, after: World) -> list[str]:
    """Names of the records that were added, removed or have another value, in order."""
    return [
        *_differences("file:", before.files, after.files, lambda file: file.content),
        *_differences("setting:", before.settings, after.settings, lambda value: value),
        *_changed_data(before.store, after.store),
    ]


def alarm_record(alarm: Alarm) -> str:
    """The name of an alarm."""
    return f"data:clock/alarm {alarm.time} {alarm.label}"


def event_record(event: Appointment) -> str:
    """The name of what is in the calendar."""
    return f"data:calendar/{event.day} {event.title}"


def contact_record(name: str) -> str:
    """The name of a person's entry."""
    return f"data:contacts/{name}"


def letter_record(number: int) -> str:
    """The name of a letter of the mailbox."""
    return f"data:mail/{number}"


def outbox_record(to: str, subject: str) -> str:
    """The name of what was sent to somebody; it stays when the letter is deleted."""
    return f"data:outbox/to {to}: {subject}"


def trash_record(path: str) -> str:
    """The name of where something in the trash came from."""
    return f"data:files/{path}"


def album_record(name: str, path: str = "") -> str:
    """The name of an album, or of a photo's being in it; the album of the favourites is called ""."""
    return f"data:photos/{name}: {path}"


def page_record(path: str, page: int) -> str:
    """The name of a bookmark at a page of a file, counted from 0 on."""
    return f"data:pdf/{path}: {page}"


def bookmark_record(address: str) -> str:
    """The name of a bookmark."""
    return f"data:browser/{address}"


def cart_record(key: str, colour: str) -> str:
    """The name of a line of the cart."""
    return f"data:shop/cart {key} {colour}"


def order_record(name: str) -> str:
    """The name of what somebody has ordered."""
    return f"data:shop/order {name}"


def booking_record(flight: str, name: str) -> str:
    """The name of a booked seat."""
    return f"data:fly/{flight} {name}"


def member_record(name: str) -> str:
    """The name of who has joined the club."""
    return f"data:club/{name}"


def newsletter_record(host: str) -> str:
    """The name of a newsletter that was subscribed to."""
    return f"data:web/newsletter {host}"


def listing_record(number: int) -> str:
    """The name of what somebody sells, with whether it is saved."""
    return f"data:market/{number}"


def thread_record(number: int) -> str:
    """The name of a thread's title."""
    return f"data:forum/{number}"


def post_record(number: int, index: int) -> str:
    """The name of a post, with its likes."""
    return f"data:forum/{number}.{index}"


def _mail(data: Any) -> Named:
    return ((letter_record(one.number), replace(one, is_read=False)) for one in letters_of(data))


def _outbox(data: Any) -> Named:
    return ((outbox_record(one.other, one.subject), replace(one, number=0)) for one in data or ())


def _clock(data: Any) -> Named:
    now = kept(data)
    yield from ((alarm_record(alarm), alarm) for alarm in now.alarms)
    yield "data:clock/timer", now.timer_ms
    yield "data:clock/stopwatch", (now.watch_ms, now.watch_from, now.laps)


def _photos(data: Any) -> Named:
    for album in albums_of(data):
        yield album_record(album.name), True
        yield from ((album_record(album.name, path), True) for path in album.paths)


def _shop(data: Any) -> Named:
    known = data if isinstance(data, shop.Shop) else shop.Shop(shop.STOCK)
    yield "data:shop/goods", known.goods
    yield from ((cart_record(key, colour), count) for key, colour, count in known.cart)
    yield from ((order_record(order.name), order) for order in known.orders)


def _fly(data: Any) -> Named:
    known = data if isinstance(data, fly.Airline) else fly.Airline()
    yield "data:fly/flights", known.flights
    yield from ((booking_record(one.flight, one.name), one) for one in known.bookings)


def _forum(data: Any) -> Iterator[tuple[str, Any]]:
    for thread in data if isinstance(data, tuple) else forum.FIRST:
        yield thread_record(thread.number), (thread.board, thread.title)
        yield from ((post_record(thread.number, n), post) for n, post in enumerate(thread.posts))


def _power(data: Any) -> Named:
    """A password that was wrong is no record, an account that is locked is one."""
    account = power.account_of(data)
    yield "data:power/customer", (account.user, account.password, account.bills)
    yield "data:power/lock", account.is_locked
    yield READINGS, account.readings


_RECORDS: Mapping[str, Callable[[Any], Named]] = {
    "mail": _mail,
    "outbox": _outbox,
    "clock": _clock,
    "shop": _shop,
    "fly": _fly,
    "forum": _forum,
    "contacts": lambda data: ((contact_record(one.name), one) for one in people(data)),
    "calendar": lambda data: ((event_record(one), one) for one in data or ()),
    "calculator": lambda data: [("data:calculator/memory", (data or calculator.Kept()).memory)],
    "files": lambda data: ((trash_record(path), origin) for path, origin in data or ()),
    "browser": lambda data: ((bookmark_record(address), True) for address in data or ()),
    "photos": _photos,
    "pdf": lambda data: ((page_record(path, page), True) for path, page in data or ()),
    "notices": lambda data: (),
    "market": lambda data: ((listing_record(one.number), one) for one in data or market.STOCK),
    "power": _power,
    "web": lambda data: ((newsletter_record(host), email) for host, email in (data or Visits()).subscribed),
    "club": lambda data: ((member_record(one.name), one) for one in data or ()),
}
"""What an app keeps → its records. What any other app keeps is one record, "data:" and its name."""


def _changed_data(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    if before is after:
        return
    for app in {**before, **after}:
        old, new = before.get(app), after.get(app)
        if old is not new and old != new:
            yield from _differences("", _records(app, old), _records(app, new), lambda value: value)


def _records(app: str, data: Any) -> Mapping[str, list[Any]]:
    if app not in _RECORDS:
        return {f"data:{app}": [data]}
    found: dict[str, list[Any]] = {}
    for name, value in _RECORDS[app](data):
        found.setdefault(name, []).append(value)
    return found


def _differences(
    kind: str, before: Mapping[str, Any], after: Mapping[str, Any], content: Callable[[Any], Any]
) -> list[str]:
    if before is after:
        return []
    missing = object()
    return [
        f"{kind}{name}"
        for name in {**before, **after}
        if before.get(name, missing) is not after.get(name, missing)
        and (name not in before or name not in after or content(before[name]) != content(after[name]))
    ]
