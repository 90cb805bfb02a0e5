"""The dialogs that every app may open: a message, a question, a file to choose. They are apps themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.input.events import Activate, Change, Command, Event, Reply
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    Button,
    ButtonRow,
    Column,
    Entry,
    Image,
    Label,
    Line,
    Row,
    Rows,
    Space,
    Widget,
    tool_button,
)

BUTTONS = {
    "ok": "OK",
    "cancel": "Cancel",
    "yes": "Yes",
    "no": "No",
    "save": "Save",
    "delete": "Delete",
    "discard": "Discard",
    "close": "Close",
}
ICONS = {
    ".txt": "text",
    ".csv": "sheet",
    ".png": "picture",
    ".odp": "slides",
    ".jpg": "photo",
    ".pdf": "pdf",
    ".py": "program",
}

add_words("""
Discard = Verwerfen = Ignorer = Descartar
Message = Meldung = Message = Mensaje
Question = Frage = Question = Pregunta
Open file = Datei öffnen = Ouvrir un fichier = Abrir archivo
Save file = Datei speichern = Enregistrer le fichier = Guardar archivo
""")


@dataclass(frozen=True)
class Message:
    """A text with buttons."""

    text: str
    icon: str
    title: str
    buttons: tuple[str, ...]


def _start_message(argument: str, reader: Reader) -> Message:
    text, icon, title, *buttons = argument.split("\x1f")
    return Message(text, icon, title, tuple(buttons))


def _build_message(state: Message, reader: Reader) -> Widget:
    first = state.buttons[0]
    return Column(
        Row(Image(state.icon, side=34), Column(*map(Label, state.text.split("\n")), grow=1), gap=2, grow=1),
        ButtonRow(
            *(
                Button(key, tr(BUTTONS.get(key, key)), kind="primary" if key == first else "")
                for key in state.buttons
            )
        ),
        pad=2,
        gap=2,
    )


def _handle_message(state: Message, event: Event, system: System) -> Message:
    if isinstance(event, Command):
        system.reply(event.id)
    return state


def title_of_message(state: Message) -> str:
    """Its own, or one for its kind."""
    return state.title or tr("Question" if len(state.buttons) > 1 else "Message")


@dataclass(frozen=True)
class Prompt:
    """A question that is answered by a line of text."""

    text: str
    value: str


def _start_prompt(argument: str, reader: Reader) -> Prompt:
    text, value = argument.split("\x1f")
    return Prompt(text, value)


def _build_prompt(state: Prompt, reader: Reader) -> Widget:
    buttons = Row(Space(), Button("ok", tr("OK"), kind="primary"), Button("cancel", tr("Cancel")))
    return Column(Label(state.text), Entry("value", state.text, state.value), Space(), buttons, pad=2, gap=2)


def _handle_prompt(state: Prompt, event: Event, system: System) -> Prompt:
    match event:
        case Command("ok") | Activate("value"):
            system.reply(state.value)
        case Command("cancel"):
            system.reply(None)
    return state


@dataclass(frozen=True)
class FileChooser:
    """A folder's contents and a name."""

    mode: str
    folder: str
    name: str
    chosen: str | None = None


def _start_chooser(argument: str, reader: Reader) -> FileChooser:
    mode, path = argument.split("\x1f")
    if reader.is_folder(path):
        return FileChooser(mode, path, "")
    return FileChooser(mode, files.parent(path), files.base(path))


def _build_chooser(state: FileChooser, reader: Reader) -> Widget:
    lines = [
        Line(path, (files.base(path),), icon=icon_of(reader, path)) for path in reader.list(state.folder)
    ]
    accept = tr("Open" if state.mode == "open" else "Save")
    return Column(
        Row(
            tool_button("up", tr("Up"), "up", enabled=state.folder != "/"),
            Label(state.folder, "muted", grow=1),
        ),
        Rows("chosen", tr("Files"), lines, state.chosen),
        Row(Label(tr("File name")), Entry("name", tr("File name"), state.name, grow=1)),
        Row(Space(), Button("accept", accept, kind="primary"), Button("cancel", tr("Cancel"))),
        pad=2,
    )


def _handle_chooser(state: FileChooser, event: Event, system: System) -> FileChooser:
    match event:
        case Change("chosen", path) if not system.is_folder(path):
            return replace(state, name=files.base(path))
        case Activate("chosen", path) if system.is_folder(path):
            return replace(state, folder=path, chosen=None)
        case Activate("chosen", path):
            return _accept(replace(state, name=files.base(path)), system)
        case Command("up"):
            return replace(state, folder=files.parent(state.folder), chosen=None)
        case Command("accept") | Activate("name"):
            return _accept(state, system)
        case Command("cancel"):
            system.reply(None)
        case Reply("replace", "yes"):
            system.reply(files.join(state.folder, state.name.strip()))
    return state


def _accept(state: FileChooser, system: System) -> FileChooser:
    name = state.name.strip().strip("/")
    path = files.join(state.folder, name)
    if system.is_folder(path) and name:
        return replace(state, folder=path, name="", chosen=None)
    if not name or "/" in name or (state.mode == "open" and not system.exists(path)):
        if state.chosen and system.is_folder(state.chosen):
            return replace(state, folder=state.chosen, chosen=None)
        return state
    if state.mode == "save" and system.exists(path):
        system.message("replace", tr("Replace the file?"), ("yes", "no"), "question")
        return state
    system.reply(path)
    return state


def icon_of(reader: Reader, path: str) -> str:
    """An image for a file's kind."""
    if reader.is_folder(path):
        return "folder"
    return next((icon for ending, icon in ICONS.items() if path.lower().endswith(ending)), "file")


def _title_of_chooser(state: FileChooser) -> str:
    return tr("Open file" if state.mode == "open" else "Save file")


MESSAGE = App(
    "dialog.message",
    "Message",
    "info",
    _start_message,
    _build_message,
    _handle_message,
    title=title_of_message,
    size=(330, 130),
    single=False,
    is_listed=False,
)
PROMPT = App(
    "dialog.prompt",
    "Question",
    "question",
    _start_prompt,
    _build_prompt,
    _handle_prompt,
    size=(300, 150),
    focus="value",
    single=False,
    is_listed=False,
)
CHOOSER = App(
    "dialog.file",
    "Open file",
    "folder",
    _start_chooser,
    _build_chooser,
    _handle_chooser,
    title=_title_of_chooser,
    size=(340, 290),
    focus="name",
    single=False,
    is_listed=False,
)
for _app in (MESSAGE, PROMPT, CHOOSER):
    register(_app)
