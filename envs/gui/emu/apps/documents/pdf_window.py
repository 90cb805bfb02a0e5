"""What the window of the Document Viewer has: tools, contents or bookmarks, the page, a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlrl.envs.gui.emu.app import Reader
from vlrl.envs.gui.emu.apps.documents.paper import Paper, chapters, found
from vlrl.envs.gui.emu.apps.documents.paper_view import PageArea
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
    tabs,
    tool_button,
)

if TYPE_CHECKING:
    from vlrl.envs.gui.emu.apps.documents.pdf import Viewer

add_words("""
Document Viewer = Dokumentbetrachter = Visionneuse = Visor de documentos
PDF|kind = PDF = PDF = PDF
Contents = Inhalt = Sommaire = Índice
Bookmarks|pages = Lesezeichen = Signets = Marcadores
Bookmark this page = Lesezeichen setzen = Ajouter un signet = Marcar esta página
Page = Seite = Page = Página
Next page = Nächste Seite = Page suivante = Página siguiente
Previous page = Vorige Seite = Page précédente = Página anterior
Go to page… = Gehe zu Seite… = Aller à la page… = Ir a la página…
Page width = Seitenbreite = Largeur de page = Ancho de página
Whole page = Ganze Seite = Page entière = Página entera
Next match = Nächster Treffer = Résultat suivant = Siguiente resultado
Previous match = Voriger Treffer = Résultat précédent = Resultado anterior
No file is open. = Keine Datei geöffnet. = Aucun fichier ouvert. = Ningún archivo abierto.
Go = Gehe zu = Aller à = Ir
""")
ICONS["pdf"] = (
    ("grey", "poly", (4, 1, 15, 1, 21, 7, 21, 23, 4, 23)),
    ("white", "poly", (5, 2, 14.5, 2, 20, 7.5, 20, 22, 5, 22)),
    ("grey", "poly", (14, 2, 20, 8, 14, 8)),
    ("red", "box", (2, 11, 17, 18)),
    *(("white", "box", (x, 12.6, x + 3, 16.4)) for x in (3.6, 8, 12.4)),
)
ICONS["bookmark"] = (("red", "poly", (6, 2, 18, 2, 18, 22, 12, 16.6, 6, 22)),)
ICONS["contents"] = (
    *(("ink", "box", (3, y, 6, y + 2.4)) for y in (4.4, 10.8, 17.2)),
    *(("ink", "box", (8.4, y, 21, y + 2.4)) for y in (4.4, 10.8, 17.2)),
)


def build(state: Viewer, reader: Reader) -> Widget:
    """Menus, tools, the panel and the page; on a phone one of the two."""
    paper = reader.read(state.path)
    if not isinstance(paper, Paper):
        words = Label(tr("No file is open."), "muted", align="center")
        button = Row(Space(), Button("open", tr("Open…"), kind="primary"), Space())
        return Column(_menus(False), Space(), words, button, Space(), gap=2)
    marked = [page for path, page in reader.data or () if path == state.path]
    hits = found(paper, state.query)
    here = tuple(hit for hit in hits if hit.page == state.page)
    page = PageArea(
        paper.pages[state.page],
        paper.title,
        state.page + 1,
        whole=state.whole == "page",
        hits=here,
        now=state.hit,
        length=len(state.query.strip()),
    )
    panel = _panel(state, paper, marked, reader) if state.has_panel else None
    body: Widget = Row(panel, page, gap=0, grow=1)
    if reader.is_mobile:
        body = panel or page
    search = _search(state, len(hits), hits.index(state.hit) + 1 if state.hit in hits else 0)
    tools = _tools(state, paper, state.page in marked, reader)
    return Column(_menus(True), *tools, search if state.is_finding else None, body, gap=0)


def _panel(state: Viewer, paper: Paper, marked: list[int], reader: Reader) -> Widget:
    names = (("contents", tr("Contents")), ("bookmarks", tr("Bookmarks|pages")))
    if state.panel == "bookmarks":
        lines = [Line(n, (f"{tr('Page')} {n + 1}",), icon="bookmark") for n in marked]
        rows = Rows("mark", tr("Bookmarks|pages"), lines, state.page)
    else:
        known = chapters(paper)
        lines = [Line(n, (page.heading, str(n + 1)), depth=page.depth) for n, page in known]
        now = max((n for n, _ in known if n <= state.page), default=None)
        rows = Rows("contents", tr("Contents"), lines, now, columns=((tr("Title"), 0), ("", 30)))
    wide = 0 if reader.is_mobile else 160
    return Column(
        tabs("panel", names, state.panel), rows, gap=0, width=wide, grow=1 if reader.is_mobile else 0
    )


def _tools(state: Viewer, paper: Paper, is_marked: bool, reader: Reader) -> tuple[Widget, ...]:
    count = len(paper.pages)
    zoom = (("width", tr("Page width")), ("page", tr("Whole page")))
    pages = (
        tool_button("previous", tr("Previous page"), "back", enabled=state.page > 0),
        Entry("goto", tr("Page"), state.goto, width=34),
        Label(f"/ {count}", "muted"),
        tool_button("next", tr("Next page"), "next", enabled=state.page < count - 1),
    )
    left = tool_button("panel", tr("Contents"), "contents", pressed=state.has_panel)
    right = (
        tool_button("bookmark", tr("Bookmark this page"), "bookmark", pressed=is_marked),
        tool_button("find", tr("Find"), "search", pressed=state.is_finding),
    )
    choice = Choice("whole", tr("View"), zoom, state.whole)
    if reader.is_mobile:
        return Row(left, Space(), *pages, Space(), *right, gap=0), Divider()
    return Row(left, *pages, Space(), choice, *right, gap=1), Divider()


def _search(state: Viewer, count: int, at: int) -> Widget:
    return Row(
        Entry("query", tr("Find"), state.query, hint=tr("Find"), grow=1),
        Label(f"{at} {tr('of')} {count}" if at else f"{count} {tr('found')}", "small"),
        tool_button("find.back", tr("Previous match"), "up", enabled=count > 0),
        tool_button("find.next", tr("Next match"), "next", enabled=count > 0),
    )


def _menus(is_open: bool) -> MenuBar:
    def item(id: str, name: str, keys: str = "") -> MenuItem:
        return MenuItem(id, tr(name), keys, enabled=is_open)

    file = (
        MenuItem("open", tr("Open…"), "ctrl+o"),
        SEPARATOR,
        MenuItem("window.close", tr("Quit"), "ctrl+q"),
    )
    view = (item("panel", "Contents", "f9"), item("find", "Find", "ctrl+f"))
    go = (
        item("next", "Next page"),
        item("previous", "Previous page"),
        item("goto", "Go to page…", "ctrl+l"),
        SEPARATOR,
        item("bookmark", "Bookmark this page", "ctrl+d"),
    )
    return MenuBar(("file", tr("File"), file), ("view", tr("View"), view), ("go", tr("Go"), go))
