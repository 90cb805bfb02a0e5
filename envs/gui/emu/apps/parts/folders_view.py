"""What Files shows: the tree of folders, the table of a folder's contents, its menus."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vlrl.envs.gui.emu import files
from vlrl.envs.gui.emu.app import Reader
from vlrl.envs.gui.emu.apps.parts.trash import TRASH
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    SEPARATOR,
    Column,
    Divider,
    Entry,
    Label,
    Line,
    MenuBar,
    MenuItem,
    Row,
    Rows,
    Widget,
    tool_button,
)
from vlrl.envs.gui.emu.widgets.menus import MenuTitle
from vlrl.envs.gui.emu.windows.dialogs import icon_of

if TYPE_CHECKING:
    from vlrl.envs.gui.emu.apps.folders import Folders

add_words("""
New folder = Neuer Ordner = Nouveau dossier = Nueva carpeta
New folder… = Neuer Ordner… = Nouveau dossier… = Nueva carpeta…
Name of the new folder = Name des neuen Ordners = Nom du nouveau dossier = Nombre de la nueva carpeta
New name = Neuer Name = Nouveau nom = Nuevo nombre
Empty trash… = Papierkorb leeren… = Vider la corbeille… = Vaciar papelera…
Delete all of it for ever? = Alles endgültig löschen? = Tout supprimer définitivement ? = ¿Eliminar todo?
Trash = Papierkorb = Corbeille = Papelera
Details = Details = Détails = Detalles
Items = Einträge = Éléments = Elementos
Characters = Zeichen = Caractères = Caracteres
Words = Wörter = Mots = Palabras
In = In = Dans = En
Kind = Art = Type = Tipo
Size = Größe = Taille = Tamaño
Search = Suche = Recherche = Búsqueda
selected = ausgewählt = sélectionnés = seleccionados
Select none = Nichts auswählen = Tout désélectionner = No seleccionar nada
items = Einträge = éléments = elementos
Text|kind = Text = Texte = Texto
Table|kind = Tabelle = Tableau = Tabla
Image|kind = Bild = Image = Imagen
Disk = Laufwerk = Disque = Disco
""")
KINDS = {
    ".txt": "Text|kind",
    ".md": "Text|kind",
    ".csv": "Table|kind",
    ".png": "Picture|kind",
    ".odp": "Presentation|kind",
    ".jpg": "Photo|kind",
    ".pdf": "PDF|kind",
    ".py": "Program|kind",
}


def build(state: Folders, reader: Reader) -> Widget:
    """Tree at the left (not on a phone), table at the right."""
    paths = shown(state, reader)
    lines = [
        Line(path, (files.base(path), _kind(reader, path), str(_size(reader, path))), icon_of(reader, path))
        for path in paths
    ]
    narrow = reader.is_mobile
    columns = ((tr("Name"), 0), (tr("Kind"), 66 if narrow else 70), (tr("Size"), 54))
    table = Rows(
        "chosen",
        tr("Files"),
        lines,
        state.chosen,
        columns=columns,
        many=True,
        drags=True,
        menu=_row_menu(state),
    )
    count = f"{len(paths)} {tr('items')}"
    if state.chosen:
        count += f", {len(state.chosen)} {tr('selected')}"
    tools = Row(
        tool_button("up", tr("Up"), "up", enabled=state.folder != "/"),
        tool_button("new_folder", tr("New folder"), "plus"),
        Label(state.folder, "muted", grow=1),
        Entry("query", tr("Search"), state.query, hint=tr("Search"), grow=1),
    )
    return Column(
        _menus(state),
        _selection_bar(state) if narrow and state.chosen else tools,
        Row(None if narrow else _tree(state, reader), table, gap=1, grow=1),
        Divider(),
        Label(count, "small"),
        gap=1,
        pad=1,
    )


def _selection_bar(state: Folders) -> Widget:
    """What a phone has in the place of its tools while something is selected."""
    in_trash = state.folder == TRASH
    return Row(
        tool_button("select_none", tr("Select none"), "close"),
        Label(f"{len(state.chosen)} {tr('selected')}", "bold", grow=1),
        None if in_trash else tool_button("cut", tr("Cut"), "cut"),
        None if in_trash else tool_button("copy", tr("Copy"), "copy"),
        tool_button("delete", tr("Delete"), "trash"),
        MenuTitle("more", "…", (*_row_menu(state), SEPARATOR, _select_all())),
    )


def _select_all() -> MenuItem:
    return MenuItem("select_all", tr("Select all"), "ctrl+a")


def shown(state: Folders, reader: Reader) -> list[str]:
    """Paths in the order of the table."""
    paths = reader.list(state.folder)
    if state.query.strip():
        start, part = state.folder.rstrip("/") + "/", state.query.strip().lower()
        paths = sorted(
            path for path in reader.world.files if path.startswith(start) and part in files.base(path).lower()
        )
    column, backward = state.sort
    keys: dict[int, Any] = {
        0: lambda path: (not reader.is_folder(path), files.base(path).lower()),
        1: lambda path: (_kind(reader, path), files.base(path).lower()),
        2: lambda path: (_size(reader, path), files.base(path).lower()),
    }
    return sorted(paths, key=keys[column], reverse=backward)


def _kind(reader: Reader, path: str) -> str:
    if reader.is_folder(path):
        return tr("Folder")
    return tr(KINDS.get("." + path.rpartition(".")[2].lower(), "File"))


def _size(reader: Reader, path: str) -> int:
    """Characters of a text, items of a folder."""
    if reader.is_folder(path):
        return len(reader.list(path))
    content = reader.read(path)
    return len(content) if isinstance(content, str) else 1


def _tree(state: Folders, reader: Reader) -> Widget:
    lines: list[Line] = []

    def add(path: str, depth: int) -> None:
        below = [inside for inside in reader.list(path) if reader.is_folder(inside)]
        is_open = path in state.unfolded
        name = files.base(path) or tr("Disk")
        icon = "trash" if path == TRASH else "folder"
        lines.append(Line(path, (name,), icon, depth, is_open if below else None))
        if is_open:
            for inside in below:
                add(inside, depth + 1)

    add("/", 0)
    return Rows("tree", tr("Folder"), lines, state.folder, grow=0, width=140)


def _row_menu(state: Folders) -> tuple[MenuItem, ...]:
    one = len(state.chosen) < 2
    if state.folder == TRASH:
        return MenuItem("restore", tr("Restore")), MenuItem("delete", tr("Delete"))
    return (
        MenuItem("open", tr("Open"), enabled=one),
        SEPARATOR,
        MenuItem("cut", tr("Cut")),
        MenuItem("copy", tr("Copy")),
        MenuItem("rename", tr("Rename…"), enabled=one),
        MenuItem("delete", tr("Delete")),
        SEPARATOR,
        MenuItem("details", tr("Details"), enabled=one),
    )


def _menus(state: Folders) -> MenuBar:
    some, one = bool(state.chosen), len(state.chosen) == 1
    in_trash = state.folder == TRASH
    return MenuBar(
        (
            "file",
            tr("File"),
            (
                MenuItem("new_folder", tr("New folder…"), "ctrl+shift+n"),
                MenuItem("open", tr("Open"), "ctrl+o", enabled=one),
                MenuItem("rename", tr("Rename…"), "f2", enabled=one),
                MenuItem("details", tr("Details"), "ctrl+i", enabled=one),
                MenuItem("delete", tr("Delete"), "delete", enabled=some),
                MenuItem("restore", tr("Restore"), enabled=some and in_trash),
                MenuItem("empty", tr("Empty trash…"), enabled=in_trash),
                SEPARATOR,
                MenuItem("window.close", tr("Quit"), "ctrl+q"),
            ),
        ),
        (
            "edit",
            tr("Edit"),
            (
                MenuItem("cut", tr("Cut"), "ctrl+x", enabled=some),
                MenuItem("copy", tr("Copy"), "ctrl+c", enabled=some),
                MenuItem("paste", tr("Paste"), "ctrl+v", enabled=bool(state.taken[1])),
                _select_all(),
            ),
        ),
    )
