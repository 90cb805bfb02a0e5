"""Work with mail (Claws Mail): a mailbox of plain files, one for each mail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from email import message_from_bytes
from email.message import Message
from email.utils import getaddresses
from typing import NamedTuple

import numpy as np

from vlrl.envs.gui.actions import Action, Answer, OpenApp, TypeText
from vlrl.envs.gui.x11.profiles import OWNER, folder_list
from vlrl.envs.gui.x11.sandbox.home import Tree
from vlrl.envs.gui.x11.task import DesktopTask, Predicate, Setup
from vlrl.envs.gui.x11.tasks.words import NOUNS, draw, keys, sentence, sentences

_MAIL = ("claws-mail",)
_PEOPLE = ("Ann Lee", "Bob Ray", "Cleo Diaz", "Dan Moss", "Eva Lind", "Finn Holt", "Gina Park", "Hugo Stein")
_FOLDERS = ("receipts", "travel", "family", "projects")
_OWN_FOLDERS = ("inbox", "sent", "draft", "queue", "trash")
_MANY_STEPS = 60
"""The scripts go to each mail key by key."""
_SEND_LATER = keys("ctrl+shift+s")


class _Mail(NamedTuple):
    """One mail of the inbox; they are listed in the order of their numbers, the oldest first."""

    number: int
    sender: str
    subject: str
    text: str

    @property
    def message_id(self) -> str:
        return f"<{self.number}@example.org>"

    def content(self) -> bytes:
        """The file of the mail."""
        head = {
            "From": f"{self.sender} <{_address(self.sender)}>",
            "To": OWNER,
            "Subject": self.subject,
            "Date": f"{self.number:02} Jun 2020 10:00:00 +0000",
            "Message-ID": self.message_id,
        }
        lines = [*(f"{name}: {value}" for name, value in head.items()), "", self.text]
        return "".join(f"{line}\n" for line in lines).encode()


def _address(person: str) -> str:
    return f"{person.split()[0].lower()}@example.org"


def _inbox(rng: np.random.Generator, count: int, senders: Sequence[str]) -> list[_Mail]:
    """Mails of the senders, of each about as many, with different subjects."""
    by = [senders[n % len(senders)] for n in range(count)]
    subjects = [f"{noun.capitalize()} {rng.integers(10, 100)}" for noun in draw(rng, NOUNS, count)]
    order = rng.permutation(count)
    return [_Mail(n + 1, by[order[n]], subjects[n], sentence(rng)) for n in range(count)]


def _mailbox(mails: Sequence[_Mail], folders: Sequence[str] = ()) -> dict[str, bytes]:
    """The files of a mailbox, and the mail program's list of its folders."""
    return {
        **{f"Mail/{name}/": b"" for name in (*_OWN_FOLDERS, *folders)},
        **{f"Mail/inbox/{mail.number}": mail.content() for mail in mails},
        **folder_list(len(mails), folders),
    }


def _mails_in(tree: Tree, folder: str) -> list[Message]:
    prefix = f"Mail/{folder}/"
    return [message_from_bytes(content) for path, content in tree.items() if path.startswith(prefix)]


def _has_mails(folder: str, mails: Sequence[_Mail]) -> Predicate:
    """These are in a folder, and no others."""
    wanted = sorted(mail.message_id for mail in mails)
    return lambda tree: sorted(str(one["Message-ID"]) for one in _mails_in(tree, folder)) == wanted


def _queued(check: Mapping[str, object], said: Sequence[str] = ()) -> Predicate:
    """The one mail that waits to be sent has these fields and lines: to, subject, answers."""

    def holds(tree: Tree) -> bool:
        queue = _mails_in(tree, "queue")
        if len(queue) != 1:
            return False
        (mail,) = queue
        found = {
            "to": {address for _, address in getaddresses([str(to) for to in mail.get_all("To", [])])},
            "subject": str(mail["Subject"]),
            "answers": str(mail["In-Reply-To"]),
        }
        body = mail.get_payload(decode=True)
        lines = body.decode("utf-8", "replace").splitlines() if isinstance(body, bytes) else []
        return all(found[key] == value for key, value in check.items()) and set(said) <= set(lines)

    return holds


def _select(mail: _Mail) -> list[Action]:
    """Open the inbox and go down to a mail."""
    return [OpenApp("claws-mail"), *keys("down", "enter", *["down"] * (mail.number - 1), "enter")]


def _find(rng: np.random.Generator, level: int) -> Setup:
    people = draw(rng, _PEOPLE, 2 + level)
    mails = _inbox(rng, 4 * level, people)
    priced = [m._replace(text=f"{m.text}\nThe price is {rng.integers(100, 9999)}.") for m in mails]
    asked = priced[int(rng.integers(len(priced)))]
    price = asked.text.rpartition(" ")[2].rstrip(".")
    return Setup(
        goal=f"Which price does {asked.sender} give in the mail “{asked.subject}”? Answer with the number.",
        oracle=[*_select(asked), Answer(price)],
        files=_mailbox(priced),
        answer=price,
        changed=[
            "Mail/inbox/*"
        ],  # it is marked as read in a file's name by no mail program that we have seen
    )


def _write(rng: np.random.Generator, level: int) -> Setup:
    people = draw(rng, _PEOPLE, 4)
    to = people[: 2 if level == 3 else 1]
    subject, lines = " ".join(draw(rng, NOUNS, 2)).capitalize(), sentences(rng, level)
    said = " and ".join(_address(one) for one in to)
    typed = [step for one in to for step in (TypeText(_address(one)), *keys("down"))]
    return Setup(
        goal=f"Write a mail to {said} with the subject “{subject}” and the text “{' / '.join(lines)}”, "
        "a line for each part between the strokes, and let Mail send it later.",
        oracle=[
            *(OpenApp("claws-mail"), *keys("ctrl+m"), *typed, *keys("tab"), TypeText(subject)),
            *(*keys("tab"), TypeText("\n".join(lines)), *_SEND_LATER),
        ],
        files=_mailbox(_inbox(rng, 2 + level, people)),
        milestones={
            "it is addressed": _queued({"to": {_address(one) for one in to}}),
            "it has its subject": _queued({"subject": subject}),
            "it has its text": _queued({}, lines),
        },
        changed=["Mail/queue/*", "Mail/draft/*"],
    )


def _reply(rng: np.random.Generator, level: int) -> Setup:
    mails = _inbox(rng, 3 * level, draw(rng, _PEOPLE, 1 + level))
    asked, text = mails[int(rng.integers(len(mails)))], sentence(rng)
    return Setup(
        goal=f"Reply to {asked.sender}'s mail “{asked.subject}” with the line “{text}”, and let Mail send it "
        "later.",
        oracle=[*_select(asked), *keys("ctrl+r"), TypeText(f"{text}\n"), *_SEND_LATER],
        files=_mailbox(mails),
        milestones={
            "it answers that mail": _queued({"answers": asked.message_id}),
            "it goes to its sender": _queued({"to": {_address(asked.sender)}}),
            "it has its text": _queued({}, [text]),
        },
        changed=["Mail/queue/*", "Mail/draft/*"],
    )


def _forward(rng: np.random.Generator, level: int) -> Setup:
    *senders, to = draw(rng, _PEOPLE, 2 + level)
    mails = _inbox(rng, 3 * level, senders)
    asked = mails[int(rng.integers(len(mails)))]
    return Setup(
        goal=f"Forward {asked.sender}'s mail “{asked.subject}” to {_address(to)}, and let Mail send it "
        "later.",
        oracle=[*_select(asked), *keys("ctrl+alt+f"), TypeText(_address(to)), *_SEND_LATER],
        files=_mailbox(mails),
        milestones={
            "it is addressed": _queued({"to": {_address(to)}}),
            "it is that mail": _queued({"subject": f"Fw: {asked.subject}"}, [asked.text]),
        },
        changed=["Mail/queue/*", "Mail/draft/*"],
    )


def _move(rng: np.random.Generator, level: int) -> Setup:
    person, *others = draw(rng, _PEOPLE, 3)
    count = 3 + 2 * level
    theirs = {int(n) for n in rng.choice(np.arange(1, count + 1), level, replace=False)}
    mails = [
        m._replace(sender=person if m.number in theirs else others[m.number % 2])
        for m in _inbox(rng, count, others)
    ]
    folder, *more = draw(rng, _FOLDERS, 3)
    wanted = [m for m in mails if m.sender == person]
    return Setup(
        goal=f"Move every mail from {person} in the inbox into the folder {folder}, and no others.",
        oracle=[
            *(OpenApp("claws-mail"), *keys("down", "enter")),
            *(step for mail in reversed(wanted) for step in _moved(mail, folder)),
        ],
        files=_mailbox(mails, sorted([folder, *more])),
        milestones={
            "they are in the folder": _has_mails(folder, wanted),
            "the others are in the inbox": _has_mails("inbox", [m for m in mails if m not in wanted]),
        },
        changed=["Mail/inbox/*", f"Mail/{folder}/*"],
        max_steps=_MANY_STEPS,
    )


def _moved(mail: _Mail, folder: str) -> list[Action]:
    return [
        *keys("home", *["down"] * (mail.number - 1), "ctrl+o"),
        TypeText(folder),
        *keys("enter"),
    ]


def _delete(rng: np.random.Generator, level: int) -> Setup:
    mails = _inbox(rng, 3 + 2 * level, draw(rng, _PEOPLE, 3))
    chosen = sorted(int(n) for n in rng.choice(len(mails), level, replace=False))
    wanted = [mails[n] for n in chosen]
    said = " and ".join(f"“{mail.subject}”" for mail in wanted)
    return Setup(
        goal=f"Put the {'mail' if level == 1 else 'mails'} with the subject {said} into the trash.",
        oracle=[
            *(OpenApp("claws-mail"), *keys("down", "enter")),
            *(
                step
                for mail in reversed(wanted)
                for step in keys("home", *["down"] * (mail.number - 1), "ctrl+d")
            ),
        ],
        files=_mailbox(mails),
        milestones={
            "they are in the trash": _has_mails("trash", wanted),
            "the others are in the inbox": _has_mails("inbox", [m for m in mails if m not in wanted]),
        },
        changed=["Mail/inbox/*", "Mail/trash/*"],
        max_steps=_MANY_STEPS,
    )


TASKS = [
    DesktopTask("mail_find", _MAIL, _find),
    DesktopTask("mail_write", _MAIL, _write),
    DesktopTask("mail_reply", _MAIL, _reply),
    DesktopTask("mail_forward", _MAIL, _forward),
    DesktopTask("mail_move", _MAIL, _move),
    DesktopTask("mail_delete", _MAIL, _delete),
]
