"""Mail: read, sort, write."""

from __future__ import annotations

from dataclasses import replace

from vlrl.envs.gui.emu import files, limits
from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.parts.mail_view import Mail, build
from vlrl.envs.gui.emu.apps.parts.mailbox import FOLDERS, Letter, find, letters_of
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Drop, Event, Open, Reply
from vlrl.envs.gui.emu.strings import tr


def start(argument: str, reader: Reader) -> Mail:
    """Start at a folder, or at the letter that has a number."""
    letter = find(letters_of(reader.data), int(argument)) if argument.isdecimal() else None
    if letter is not None:
        return Mail(letter.folder, letter.number, is_open=True)
    return Mail(argument if argument in FOLDERS else "inbox")


def handle(state: Mail, event: Event, system: System) -> Mail:
    """Read, sort, write."""
    letters = letters_of(system.data)
    letter = find(letters, state.letter)
    match event:
        case Open(argument):
            opened = start(argument, system)
            if opened.letter is None or state.is_writing:  # what is being written stays
                return state
            _change(system, opened.letter, is_read=True)
            return opened
        case Change("letter", int(number)) if not system.is_mobile:
            _change(system, number, is_read=True)
        case Activate("letter", int(number)) if system.is_mobile:
            _change(system, number, is_read=True)
            return replace(state, is_open=True)
        case Command("list"):
            return replace(state, is_open=False)
        case Change("folder"):
            return replace(state, letter=None, is_open=False, query="")
        case Command("new"):
            return replace(state, is_writing=True, to="", subject="", body="", attached=(), forwarded=())
        case Command("discard"):
            return replace(state, is_writing=False)
        case Command("send"):
            return _send(state, letters, system)
        case Command("attach"):
            system.choose_file("attach", "open")
        case Reply("attach", str(path)) if path not in state.attached:
            return replace(state, attached=(*state.attached, path))
        case Drop("folder", int(number), str(folder)):
            return _moved(state, system, number, folder)
        case Reply(id, str(path)) if letter is not None and id.startswith("attachment."):
            system.write(path, letter.files[int(id.partition(".")[2])][1])
        case Command(id, on):
            chosen = find(letters, on) if on is not None else letter
            return state if chosen is None else _do(state, id, chosen, system)
    return state


def _do(state: Mail, command: str, letter: Letter, system: System) -> Mail:
    """A command on a letter: the one that is open, or the one that a context menu is of."""
    match command.split("."):
        case ["star"]:
            _change(system, letter.number, is_starred=not letter.is_starred)
        case ["unread"]:
            _change(system, letter.number, is_read=False)
        case ["delete"]:
            return _moved(state, system, letter.number, "" if letter.folder == "trash" else "trash")
        case ["move", folder]:
            return _moved(state, system, letter.number, folder)
        case ["attachment", index]:
            name = letter.files[int(index)][0]
            system.choose_file(command, "save", files.join("/Documents", name))
        case ["reply" | "forward"]:
            quoted = "\n".join(f"> {line}" for line in letter.text.split("\n"))
            is_reply = command == "reply"
            if len(quoted) > limits.AREA_CHARS or len(letter.subject) > limits.FIELD_CHARS:
                system.refuse(limits.TOO_LONG)
                return state
            return replace(
                state,
                is_writing=True,
                to=letter.other if is_reply else "",
                subject=("Re: " if is_reply else "Fwd: ") + letter.subject,
                body="" if is_reply else quoted,
                attached=(),
                forwarded=() if is_reply else letter.files,
            )
    return state


def _change(system: System, number: int, **values: object) -> None:
    letters = letters_of(system.data)
    system.keep(tuple(replace(one, **values) if one.number == number else one for one in letters))  # type: ignore[arg-type]


def _moved(state: Mail, system: System, number: int, folder: str) -> Mail:
    """Move a letter into a folder; without a folder it is deleted."""
    if folder in FOLDERS:
        _change(system, number, folder=folder)
    elif not folder:
        system.keep(tuple(one for one in letters_of(system.data) if one.number != number))
    return replace(state, letter=None, is_open=False) if state.letter == number else state


def _send(state: Mail, letters: tuple[Letter, ...], system: System) -> Mail:
    name, _, host = state.to.strip().partition("@")
    if not name or "." not in host or " " in state.to.strip():
        system.message("address", tr("No such address."), icon="warning")
        return state
    attached = tuple((files.base(path), system.read(path)) for path in state.attached)
    letter = Letter(
        1 + max((one.number for one in letters), default=0),
        "sent",
        state.to.strip(),
        state.subject,
        state.body,
        is_read=True,
        files=(*attached, *state.forwarded),
    )
    outbox = system.data_of("outbox") or ()  # the mailbox forgets what is deleted; what was sent is sent
    if not system.keep((letter, *letters)) or not system.keep_for("outbox", (*outbox, letter)):
        return state
    return replace(state, is_writing=False)


MAIL = register(App("mail", "Mail", "mail", start, build, handle, size=(520, 380)))
