"""Text Editor: one text file at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from vlrl.envs.gui.emu import limits
from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.parts import documents
from vlrl.envs.gui.emu.apps.parts.documents import Document
from vlrl.envs.gui.emu.input.events import Command, Event
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    SEPARATOR,
    Button,
    Column,
    Divider,
    Entry,
    Label,
    MenuBar,
    MenuItem,
    Row,
    Widget,
    tool_bar,
    tool_button,
)
from vlrl.envs.gui.emu.windows.menus import edit_items

add_words("""
Text Editor = Texteditor = Éditeur de texte = Editor de texto
Text = Text = Texte = Texto
words = Wörter = mots = palabras
Find and replace… = Suchen und ersetzen… = Rechercher et remplacer… = Buscar y reemplazar…
Replace with = Ersetzen durch = Remplacer par = Reemplazar con
Replace all = Alle ersetzen = Tout remplacer = Reemplazar todo
found = gefunden = trouvés = encontrados
Saved = Gespeichert = Enregistré = Guardado
Not saved = Nicht gespeichert = Non enregistré = Sin guardar
""")


@dataclass(frozen=True)
class Editor(Document):
    """What is edited.

    Attributes:
        text: as it is now.
        is_finding: whether one can search, for `query`, and put `other` in its place.
    """

    saved: str = ""
    text: str = ""
    is_finding: bool = False
    query: str = ""
    other: str = ""

    @classmethod
    def parsed(cls, stored: Any) -> str | None:
        """The text of a file."""
        return stored if isinstance(stored, str) else None

    @property
    def content(self) -> str:
        """The text."""
        return self.text

    def holding(self, content: str) -> Self:
        """State with another text."""
        return replace(self, text=content)


def build(state: Editor, reader: Reader) -> Widget:
    """Menus, tools, the text, a status line."""
    menus = MenuBar(
        documents.file_menu(),
        ("edit", tr("Edit"), (*edit_items(), SEPARATOR, MenuItem("find", tr("Find and replace…"), "ctrl+f"))),
    )
    tools = tool_bar(
        tool_button("new", tr("New"), "new"),
        tool_button("open", tr("Open"), "open"),
        tool_button("save", tr("Save"), "save"),
    )
    state_text = tr("Not saved" if state.is_changed else "Saved")
    return Column(
        menus,
        tools,
        Divider(),
        _find_bar(state) if state.is_finding else None,
        Entry("text", tr("Text"), state.text, lines=4, grow=1),
        Row(Label(state_text, "small", grow=1), Label(f"{len(state.text.split())} {tr('words')}", "small")),
        gap=0,
    )


def _find_bar(state: Editor) -> Widget:
    count = f"{state.text.count(state.query) if state.query else 0} {tr('found')}"
    return Column(
        Row(
            Entry("query", tr("Find"), state.query, hint=tr("Find"), grow=1),
            Label(count, "small"),
            tool_button("find", tr("Close"), "close"),
        ),
        Row(
            Entry("other", tr("Replace with"), state.other, hint=tr("Replace with"), grow=1),
            Button("replace_all", tr("Replace all"), enabled=bool(state.query)),
        ),
        pad=1,
    )


def handle(state: Editor, event: Event, system: System) -> Editor:
    """Find and replace; the rest is about files."""
    match event:
        case Command("find"):
            system.focus("text" if state.is_finding else "query")
            return replace(state, is_finding=not state.is_finding)
        case Command("replace_all") if state.query:
            grown = state.text.count(state.query) * (len(state.other) - len(state.query))
            if grown > 0 and len(state.text) + grown > limits.AREA_CHARS:
                system.refuse(limits.TOO_LONG)
                return state
            return replace(state, text=state.text.replace(state.query, state.other))
    return documents.handle(state, event, system)


EDITOR = register(
    App(
        "editor",
        "Text Editor",
        "editor",
        Editor.start,
        build,
        handle,
        title=documents.title,
        size=(420, 320),
        focus="text",
        opens=(".txt", ".md"),
    )
)
