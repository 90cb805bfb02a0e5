"""What the window of Code has: the project's files or a search at the left, tabs, the text, the problems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlrl.envs.gui.emu.app import Reader
from vlrl.envs.gui.emu.apps.code.lint import Problem, problems
from vlrl.envs.gui.emu.apps.code.project import all_problems, matches, text_of
from vlrl.envs.gui.emu.apps.code.text import CodeArea, CodeText
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.files import base
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    SEPARATOR,
    Button,
    Check,
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
    tabs,
    tool_button,
)
from vlrl.envs.gui.emu.windows.dialogs import icon_of
from vlrl.envs.gui.emu.windows.menus import edit_items

if TYPE_CHECKING:
    from vlrl.envs.gui.emu.apps.code.app import Code

add_words("""
Code = Code = Code = Código
Program|kind = Programm = Programme = Programa
Problems = Probleme = Problèmes = Problemas
No problems = Keine Probleme = Aucun problème = Sin problemas
is not defined = ist nicht definiert = n’est pas défini = no está definido
A colon is missing = Ein Doppelpunkt fehlt = Il manque deux-points = Faltan los dos puntos
A bracket does not match = Eine Klammer passt nicht = Une parenthèse ne va pas = Un paréntesis no cuadra
Line|number = Zeile = Ligne = Línea
New file… = Neue Datei… = Nouveau fichier… = Archivo nuevo…
Name of the new file = Name der neuen Datei = Nom du nouveau fichier = Nombre del archivo nuevo
Close tab = Tab schließen = Fermer l’onglet = Cerrar pestaña
Save all = Alles speichern = Tout enregistrer = Guardar todo
Search in all files = In allen Dateien suchen = Rechercher dans les fichiers = Buscar en los archivos
Whole words = Ganze Wörter = Mots entiers = Palabras completas
Go to line… = Gehe zu Zeile… = Aller à la ligne… = Ir a la línea…
Go to line = Gehe zu Zeile = Aller à la ligne = Ir a la línea
Next problem = Nächstes Problem = Problème suivant = Problema siguiente
""")
ICONS["code"] = (
    ("dark", "box", (2, 3, 22, 21)),
    ("sky", "poly", (9, 8, 10.4, 9.4, 7.8, 12, 10.4, 14.6, 9, 16, 5, 12)),
    ("sky", "poly", (15, 8, 13.6, 9.4, 16.2, 12, 13.6, 14.6, 15, 16, 19, 12)),
)
ICONS["program"] = (
    ("grey", "poly", (4, 1, 15, 1, 21, 7, 21, 23, 4, 23)),
    ("white", "poly", (5, 2, 14.5, 2, 20, 7.5, 20, 22, 5, 22)),
    ("blue", "poly", (10, 11, 11, 12, 8.6, 14.6, 11, 17.2, 10, 18.2, 6.4, 14.6)),
    ("blue", "poly", (14, 11, 13, 12, 15.4, 14.6, 13, 17.2, 14, 18.2, 17.6, 14.6)),
)
ICONS["problem"] = (
    ("red", "disc", (12, 12, 9)),
    ("white", "poly", (8, 9.4, 9.4, 8, 16, 14.6, 14.6, 16)),
    ("white", "poly", (16, 9.4, 14.6, 8, 8, 14.6, 9.4, 16)),
)
MESSAGES = {"colon": "A colon is missing", "bracket": "A bracket does not match"}
SHOWN_PROBLEMS = 3


def message(problem: Problem) -> str:
    """What the list says of a problem."""
    if problem.kind == "undefined":
        return f"“{problem.name}” {tr('is not defined')}"
    return tr(MESSAGES[problem.kind])


def build(state: Code, reader: Reader) -> Widget:
    """Menus, the side, tabs and text, problems, where things are."""
    found = all_problems(state.root, state.changed, reader)
    lines = [
        Line(n, (message(problem), base(path), str(problem.line)), icon="problem")
        for n, (path, problem) in enumerate(found)
    ]
    columns = (("", 0), (tr("File"), 90), (tr("Line|number"), 44))
    height = 21 * (1 + SHOWN_PROBLEMS)
    title = f"{tr('Problems')}: {len(found)}" if found else tr("No problems")
    below = (
        Divider(),
        Label(title, "bold" if found else "muted"),
        Rows("problem", tr("Problems"), lines, columns=columns, grow=0, height=height) if found else None,
    )
    main = Column(*_text(state, reader), *below, gap=0, grow=1)
    return Column(_menus(state), Row(_side(state, reader), main, gap=0, grow=1), gap=0)


def _text(state: Code, reader: Reader) -> tuple[Widget | None, ...]:
    """The tabs and the text of the chosen one."""
    if not state.path:
        return Space(), Label(base(state.root), "title", align="center"), Space()
    names = tuple((path, ("• " if path in state.changed else "") + base(path)) for path in state.tabs)
    strip = Row(
        tabs("path", names, state.path), Space(), tool_button("close_tab", tr("Close tab"), "close"), gap=0
    )
    text = text_of(state.path, state.changed, reader)
    wrong = problems(text) if state.path.endswith(".py") else ()
    area = CodeArea(CodeText(f"text.{state.path}", base(state.path), text, wrong))
    return strip, _find_bar(state, text) if state.is_finding else None, area


def _find_bar(state: Code, text: str) -> Widget:
    count = len(state.places(text))
    return Column(
        Row(
            Entry("query", tr("Find"), state.query, hint=tr("Find"), grow=1),
            Label(f"{count} {tr('found')}", "small"),
            Check("words", tr("Whole words"), state.words),
        ),
        Row(
            Entry("other", tr("Replace with"), state.other, hint=tr("Replace with"), grow=1),
            Button("replace_all", tr("Replace all"), enabled=count > 0),
        ),
    )


def _side(state: Code, reader: Reader) -> Widget:
    names = (("files", tr("Files")), ("search", tr("Search")))
    body: tuple[Widget, ...] = (_tree(state, reader),)
    if state.side == "search":
        lines = [
            Line(n, (f"{base(match.path)}:{match.line}  {match.said}",), icon="program")
            for n, match in enumerate(matches(state.root, state.search, state.changed, reader))
        ]
        entry = Entry("search", tr("Search in all files"), state.search, hint=tr("Search"))
        count = Label(f"{len(lines)} {tr('found')}", "small")
        body = (entry, count, Rows("match", tr("Search"), lines))
    return Column(tabs("side", names, state.side), *body, gap=0, width=190 if state.side == "search" else 150)


def _tree(state: Code, reader: Reader) -> Widget:
    lines: list[Line] = []

    def add(folder: str, depth: int) -> None:
        for path in reader.list(folder):
            is_folder = reader.is_folder(path)
            is_open = path in state.unfolded
            name = ("• " if path in state.changed else "") + base(path)
            lines.append(Line(path, (name,), icon_of(reader, path), depth, is_open if is_folder else None))
            if is_folder and is_open:
                add(path, depth + 1)

    lines.append(Line(state.root, (base(state.root) or "/",), "folder", 0, True, bold=True))
    add(state.root, 1)
    return Rows("file", tr("Files"), lines, state.path or None, width=120)


def _menus(state: Code) -> MenuBar:
    is_open = bool(state.path)
    file = (
        MenuItem("new", tr("New file…"), "ctrl+n"),
        MenuItem("open", tr("Open…"), "ctrl+o"),
        MenuItem("save", tr("Save"), "ctrl+s", enabled=is_open),
        MenuItem("save_all", tr("Save all"), "ctrl+alt+s", enabled=bool(state.changed)),
        MenuItem("close_tab", tr("Close tab"), "ctrl+w", enabled=is_open),
        SEPARATOR,
        MenuItem("window.close", tr("Quit"), "ctrl+q"),
    )
    edit = (
        *edit_items(),
        SEPARATOR,
        MenuItem("find", tr("Find and replace…"), "ctrl+f", enabled=is_open),
        MenuItem("find_all", tr("Search in all files"), "ctrl+shift+f"),
        MenuItem("line", tr("Go to line…"), "ctrl+g", enabled=is_open),
        MenuItem("next", tr("Next problem"), "f8"),
    )
    return MenuBar(("file", tr("File"), file), ("edit", tr("Edit"), edit))
