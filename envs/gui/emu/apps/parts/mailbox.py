"""What a mailbox is: letters in folders, one value."""

from __future__ import annotations

from dataclasses import dataclass

FOLDERS = {
    "inbox": "Inbox",
    "work": "Work",
    "family": "Family",
    "archive": "Archive",
    "sent": "Sent",
    "trash": "Trash",
}


@dataclass(frozen=True)
class Letter:
    """A mail.

    Attributes:
        number: unlike any other's.
        other: address of who wrote it, or of whom it was sent to where `folder` is "sent".
        files: (name, content) of what is attached.
    """

    number: int
    folder: str
    other: str
    subject: str
    text: str
    date: str = ""
    is_read: bool = False
    is_starred: bool = False
    files: tuple[tuple[str, object], ...] = ()


WELCOME = (Letter(1, "inbox", "team@harbour.example", "Welcome", "Your mailbox is ready.", "2 Mar"),)


def letters_of(data: object) -> tuple[Letter, ...]:
    """The whole mailbox, the newest first."""
    return data if isinstance(data, tuple) else WELCOME


def find(letters: tuple[Letter, ...], number: int | None) -> Letter | None:
    """The letter with a number."""
    return next((letter for letter in letters if letter.number == number), None)


def person(sender: str) -> str:
    """The name of who has an address."""
    return " ".join(part.capitalize() for part in sender.partition("@")[0].split("."))
