"""Mailboxes drawn for tasks: people, what they write about, and what a mailbox is expected to become."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from vlrl.envs.gui.emu.apps.parts.mailbox import Letter, person
from vlrl.envs.gui.emu.records import letter_record, outbox_record
from vlrl.envs.gui.emu.state import World
from vlrl.envs.gui.emu.task import Draw, Predicate

FIRST = (
    *("anna", "ben", "carla", "david", "elif", "farid", "greta", "hugo", "ines", "jonas", "keiko", "liam"),
    *("mara", "nils", "olga", "pablo", "rosa", "samir", "tessa", "yusuf"),
)
LAST = (
    "adler",
    "brook",
    "costa",
    "duval",
    "engel",
    "ferro",
    "grant",
    "holm",
    "ito",
    "keller",
    "lind",
    "moss",
)
HOSTS = ("birch.example", "delta.example", "lakeside.example", "quarry.example")
TOPICS = {
    "Team lunch": "Shall we meet at the canteen? The new menu looks good.",
    "Printer on floor 3": "It is out of order again. Please use the one on floor 2.",
    "Holiday photos": "The best ones are from the second day, on the lake.",
    "Invoice": "You find the amount below. Payment is due at the end of the month.",
    "Garden party": "We start in the afternoon. Bring a chair if you have one.",
    "Lost umbrella": "A green one, left in the meeting room. Is it yours?",
    "Book club": "This month we read a novel about the sea.",
    "Concert tickets": "I got two more. Tell me if you want them.",
    "Parking": "The yard is closed for repairs all week.",
    "New bicycle": "It is red and very fast. Come and see it.",
    "Choir rehearsal": "We sing the old songs first, then the new ones.",
    "Budget plan": "The numbers for the spring are ready to be checked.",
    "Train strike": "There will be few trains. Plan some extra time.",
    "Recipe for soup": "Leeks, potatoes, a little cream, and patience.",
    "Kitchen rota": "Please look up which day is yours.",
    "Survey": "Ten questions, five minutes. Thank you very much.",
}
DAYS = tuple(f"{day} {month}" for month in ("Mar", "Feb", "Jan") for day in (28, 24, 19, 15, 11, 8, 4, 2))


def address(draw: Draw) -> str:
    """Somebody's."""
    return f"{draw.pick(FIRST)}.{draw.pick(LAST)}@{draw.pick(HOSTS)}"


def people(draw: Draw, count: int) -> list[str]:
    """Addresses of people with different names."""
    names = zip(draw.picks(FIRST, count), (draw.pick(LAST) for _ in range(count)), strict=True)
    return [f"{first}.{last}@{draw.pick(HOSTS)}" for first, last in names]


def mailbox(draw: Draw, count: int, *special: Letter) -> tuple[Letter, ...]:
    """So many letters by different people about different things, the special ones among them, numbered."""
    topics, senders = draw.picks(tuple(TOPICS), count), people(draw, count)
    taken = {letter.subject for letter in special} | {person(letter.other) for letter in special}
    others = [
        Letter(0, "inbox", sender, topic, signed(TOPICS[topic], sender), is_read=draw.number(0, 2) > 0)
        for topic, sender in zip(topics, senders, strict=True)
        if topic not in taken and person(sender) not in taken
    ]
    letters = draw.picks([*others[: count - len(special)], *special], count)
    return tuple(
        replace(letter, number=11 + index, date=DAYS[index % len(DAYS)])
        for index, letter in enumerate(letters)
    )


def signed(text: str, sender: str) -> str:
    """Text with a greeting and a name."""
    return f"Hello,\n\n{text}\n\n{person(sender)}"


def numbered(letters: tuple[Letter, ...], holds: Callable[[Letter], bool]) -> list[int]:
    """The numbers of those that something holds of."""
    return [letter.number for letter in letters if holds(letter)]


def changed(letters: Collection[Letter], numbers: list[int], **values: object) -> frozenset[Letter]:
    """The mailbox with something changed in some letters, whether they were read or not."""
    return _unread(replace(one, **values) if one.number in numbers else one for one in letters)  # type: ignore[arg-type]


def holds(wanted: Collection[Letter]) -> Predicate:
    """Whether the mailbox is just this, whatever was read."""
    return lambda world: _unread(world.store["mail"]) == wanted


def sent(letters: tuple[Letter, ...], *wanted: tuple[str, str, str], **values: object) -> Predicate:
    """Whether just these letters (to, subject, text) were sent, and nothing else changed."""
    before = _unread(letters)
    expected = {_plain(Letter(0, "sent", *one, **values)) for one in wanted}  # type: ignore[arg-type]

    def are_those(found: Collection[Letter]) -> bool:
        return len(found) == len(wanted) and {_plain(one) for one in found} == expected

    def were_sent(world: World) -> bool:
        after = _unread(world.store["mail"])
        return before <= after and are_those(after - before) and are_those(world.store.get("outbox") or ())

    return were_sent


def sending(letters: Collection[Letter], *wanted: tuple[str, str]) -> list[str]:
    """The records that change when letters (to, subject) are sent: they get the next numbers."""
    first = 1 + max(letter.number for letter in letters)
    numbers = range(first, first + len(wanted))
    return [*map(letter_record, numbers), *(outbox_record(*one) for one in wanted)]


def _plain(letter: Letter) -> Letter:
    return replace(letter, number=0, is_read=False, text=letter.text.strip(), subject=letter.subject.strip())


def _unread(letters: Iterable[Letter]) -> frozenset[Letter]:
    return frozenset(replace(letter, is_read=False) for letter in letters)
