"""What the mail app shows: folders, a list, the letter that is read or written."""

from __future__ import annotations

from dataclasses import dataclass

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.app import Reader
from vlrl.envs.gui.emu.apps.parts.mailbox import FOLDERS, Letter, find, letters_of, person
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    SEPARATOR,
    Button,
    Choice,
    Column,
    Divider,
    Entry,
    Label,
    Line,
    MenuBar,
    MenuItem,
    Row,
    Rows,
    Space,
    Widget,
    field_row,
    tool_bar,
    tool_button,
)
from vlrl.envs.gui.emu.windows.menus import edit_items

add_words("""
Mail = Post = Courrier = Correo
Message|mail = Nachricht = Message = Mensaje
Inbox = Eingang = Réception = Entrada
Work = Arbeit = Travail = Trabajo
Family = Familie = Famille = Familia
Archive = Archiv = Archives = Archivo
Sent = Gesendet = Envoyés = Enviados
Trash = Papierkorb = Corbeille = Papelera
Folders = Ordner = Dossiers = Carpetas
Letters = Nachrichten = Messages = Mensajes
From = Von = De = De
To = An = À = Para
Subject = Betreff = Objet = Asunto
Date = Datum = Date = Fecha
Reply = Antworten = Répondre = Responder
Forward = Weiterleiten = Transférer = Reenviar
Star = Markieren = Suivre = Destacar
Mark as unread = Als ungelesen markieren = Marquer comme non lu = Marcar como no leído
Move to = Verschieben nach = Déplacer vers = Mover a
Send = Senden = Envoyer = Enviar
Discard = Verwerfen = Ignorer = Descartar
Attach… = Anhängen… = Joindre… = Adjuntar…
Attachments = Anhänge = Pièces jointes = Adjuntos
Nothing is selected. = Nichts ausgewählt. = Rien n’est sélectionné. = Nada seleccionado.
No such address. = Keine solche Adresse. = Adresse inconnue. = No existe la dirección.
""")


ICONS["letter"] = (
    ("grey", "poly", (1, 9, 12, 1, 23, 9, 23, 22, 1, 22)),
    ("white", "poly", (2, 10, 12, 16, 22, 10, 22, 21, 2, 21)),
)


@dataclass(frozen=True)
class Mail:
    """What is looked at and what is being written.

    Attributes:
        letter: number of the selected one; shown below the list, on a phone alone when it `is_open`.
        attached: paths of what will be attached.
        forwarded: (name, content) of what was attached to the letter that is forwarded.
    """

    folder: str = "inbox"
    letter: int | None = None
    is_open: bool = False
    query: str = ""
    is_writing: bool = False
    to: str = ""
    subject: str = ""
    body: str = ""
    attached: tuple[str, ...] = ()
    forwarded: tuple[tuple[str, object], ...] = ()


def shown(state: Mail, letters: tuple[Letter, ...]) -> list[Letter]:
    """Those of the folder, or of every folder that have what is searched for."""
    words = state.query.lower().split()
    if not words:
        return [letter for letter in letters if letter.folder == state.folder]
    texts = ((letter, f"{letter.other} {letter.subject} {letter.text}".lower()) for letter in letters)
    return [letter for letter, text in texts if all(word in text for word in words)]


def build(state: Mail, reader: Reader) -> Widget:
    """The mailbox, or the letter that is written."""
    menus = MenuBar(
        ("message", tr("Message|mail"), _commands()),
        ("edit", tr("Edit"), edit_items()),
    )
    if state.is_writing:
        return Column(menus, _writing(state), gap=0)
    letters = letters_of(reader.data)
    letter = find(letters, state.letter)
    parts: list[Widget] = [menus, _tools(letter, state.is_open, reader)]
    search = Entry("query", tr("Find"), state.query, hint=tr("Find") + "…", grow=int(reader.is_mobile))
    folders = tuple((key, _folder_name(key, letters)) for key in FOLDERS)
    if reader.is_mobile:
        if letter is not None and state.is_open:
            return Column(*parts, _reading(letter), gap=0)
        chooser = Choice("folder", tr("Folders"), folders, state.folder)
        return Column(*parts, Row(chooser, search, pad=1), _list(state, letters, reader), gap=0)
    side = Rows(
        "folder",
        tr("Folders"),
        [Line(key, (name,)) for key, name in folders],
        state.folder,
        grow=0,
        width=105,
    )
    reading = Label(tr("Nothing is selected."), "muted") if letter is None else _reading(letter)
    main = Column(search, _list(state, letters, reader), Column(reading, grow=2), grow=1)
    return Column(*parts, Row(side, main, gap=1, pad=1, grow=1), gap=0)


def _folder_name(key: str, letters: tuple[Letter, ...]) -> str:
    new = sum(letter.folder == key and not letter.is_read for letter in letters)
    return tr(FOLDERS[key]) + (f" ({new})" if new else "")


def _commands() -> tuple[MenuItem, ...]:
    return (
        MenuItem("new", tr("New"), "ctrl+n"),
        MenuItem("reply", tr("Reply"), "ctrl+r"),
        MenuItem("forward", tr("Forward"), "ctrl+l"),
        SEPARATOR,
        MenuItem("star", tr("Star"), "ctrl+d"),
        MenuItem("unread", tr("Mark as unread"), "ctrl+u"),
        MenuItem("delete", tr("Delete")),
        SEPARATOR,
        MenuItem("window.close", tr("Quit"), "ctrl+q"),
    )


def _row_menu() -> tuple[MenuItem, ...]:
    moves = tuple(
        MenuItem(f"move.{key}", f"{tr('Move to')} {tr(FOLDERS[key])}")
        for key in ("inbox", "work", "family", "archive")
    )
    return (*_commands()[1:7], SEPARATOR, *moves)


def _tools(letter: Letter | None, is_open: bool, reader: Reader) -> Widget:
    def tool(id: str, name: str, icon: str, enabled: bool = letter is not None) -> Button:
        return tool_button(id, tr(name), icon, enabled=enabled)

    return Row(
        tool("list", "Back", "back", is_open) if reader.is_mobile else None,
        tool_bar(
            tool("new", "New", "new", True),
            tool("reply", "Reply", "reply"),
            tool("forward", "Forward", "next"),
            tool("star", "Star", "star"),
            tool("delete", "Delete", "trash"),
        ),
        Space(),
    )


def _list(state: Mail, letters: tuple[Letter, ...], reader: Reader) -> Widget:
    columns = ((tr("To" if state.folder == "sent" else "From"), 130), (tr("Subject"), 0), (tr("Date"), 62))
    lines = [_line(letter) for letter in shown(state, letters)]
    wide = columns[:2] if reader.is_mobile else columns
    return Rows(
        "letter", tr("Letters"), lines, state.letter, columns=wide, drags=True, menu=_row_menu(), grow=3
    )


def _line(letter: Letter) -> Line:
    icon = "star" if letter.is_starred else "letter" if letter.is_read else "mail"
    cells = (person(letter.other), letter.subject, letter.date)
    return Line(letter.number, cells, icon, bold=not letter.is_read)


def _reading(letter: Letter) -> Widget:
    attached = [
        Button(f"attachment.{index}", name, icon="file") for index, (name, _) in enumerate(letter.files)
    ]
    return Column(
        Label(letter.subject, "bold"),
        Row(Label(letter.other, "muted", grow=1), Label(letter.date, "muted")),
        Entry("shown", tr("Message|mail"), letter.text, lines=4, grow=1),
        Row(*attached, Space()) if attached else None,
        pad=1,
        grow=1,
    )


def _writing(state: Mail) -> Widget:
    names = [*map(files.base, state.attached), *(name for name, _ in state.forwarded)]
    return Column(
        tool_bar(
            Button("send", tr("Send"), kind="tool", icon="send"),
            Button("attach", tr("Attach…"), kind="tool", icon="file"),
            Button("discard", tr("Discard"), kind="tool", icon="trash"),
        ),
        Divider(),
        field_row(tr("To"), Entry("to", tr("To"), state.to, grow=1), width=55),
        field_row(tr("Subject"), Entry("subject", tr("Subject"), state.subject, grow=1), width=55),
        Entry("body", tr("Message|mail"), state.body, lines=4, grow=1),
        Label(f"{tr('Attachments')}: {', '.join(names)}", "small") if names else None,
        pad=1,
        grow=1,
    )
