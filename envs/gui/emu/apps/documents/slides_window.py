"""What the window of Slides has: menus, tools, the small slides, the chosen one, its notes; or the show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vlrl.envs.gui.emu.app import Reader
from vlrl.envs.gui.emu.apps.documents.deck import DESIGNS
from vlrl.envs.gui.emu.apps.documents.slide_view import Show, SlideArea, SlideText, Thumbnails
from vlrl.envs.gui.emu.apps.parts import documents
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    SEPARATOR,
    Choice,
    Column,
    Divider,
    Entry,
    Label,
    MenuBar,
    MenuItem,
    Row,
    Space,
    Widget,
    tool_bar,
    tool_button,
)
from vlrl.envs.gui.emu.windows.menus import edit_items

if TYPE_CHECKING:
    from vlrl.envs.gui.emu.apps.documents.slides import Slides

add_words("""
Slides = Präsentation = Présentation = Presentación
Presentation|kind = Präsentation = Présentation = Presentación
Slide = Folie = Diapositive = Diapositiva
New slide = Neue Folie = Nouvelle diapositive = Nueva diapositiva
Duplicate slide = Folie duplizieren = Dupliquer la diapositive = Duplicar diapositiva
Delete slide = Folie löschen = Supprimer la diapositive = Eliminar diapositiva
Move slide up = Folie nach oben = Monter la diapositive = Subir diapositiva
Move slide down = Folie nach unten = Descendre la diapositive = Bajar diapositiva
Undo slide change = Folienänderung zurücknehmen = Annuler le changement = Deshacer el cambio
Start slide show = Bildschirmpräsentation starten = Lancer le diaporama = Iniciar presentación
End slide show = Präsentation beenden = Terminer le diaporama = Terminar presentación
Design = Design = Thème = Diseño
Plain = Schlicht = Simple = Sencillo
Blue band = Blaues Band = Bandeau bleu = Banda azul
Sand = Sand = Sable = Arena
Title = Titel = Titre = Título
Points = Punkte = Points = Puntos
Click to add a title = Titel durch Klicken hinzufügen = Cliquez pour ajouter un titre = Clic para el título
Click to add text = Text durch Klicken hinzufügen = Cliquez pour ajouter du texte = Clic para añadir texto
Notes = Notizen = Notes = Notas
of = von = sur = de
Next = Weiter = Suivant = Siguiente
""")
ICONS["slides"] = (
    ("orange", "box", (2, 4, 22, 18)),
    ("white", "box", (4, 6, 20, 16)),
    ("orange", "box", (6, 8, 14, 9.6)),
    *(("grey", "box", (6, y, 18, y + 1.2)) for y in (11, 13.4)),
    ("grey", "poly", (11, 18, 13, 18, 16, 23, 14, 23, 12, 20, 10, 23, 8, 23)),
)
ICONS["slide_new"] = (
    ("orange", "box", (2, 5, 18, 17)),
    ("white", "box", (4, 7, 16, 15)),
    ("green", "box", (17, 13, 20, 23)),
    ("green", "box", (13.5, 16.5, 23.5, 19.5)),
)
ICONS["slide_show"] = (
    ("dark", "box", (2, 4, 22, 20)),
    ("white", "poly", (9, 8, 17, 12, 9, 16)),
)


def build(state: Slides, reader: Reader) -> Widget:
    """Menus, tools, the small slides at the left, the chosen one, its notes; or the show."""
    place = f"{tr('Slide')} {state.at + 1} {tr('of')} {len(state.slides)}"
    if state.is_shown:
        return _show(state, place)
    design, slide, key = DESIGNS[state.design], state.slide, state.chosen
    title = SlideText(
        f"title.{key}", tr("Title"), slide.title, design, is_title=True, hint=tr("Click to add a title")
    )
    points = SlideText(
        f"points.{key}",
        tr("Points"),
        "\n".join(slide.points),
        design,
        is_title=False,
        hint=tr("Click to add text"),
    )
    pairs = tuple(zip(state.keys, state.slides, strict=True))
    small = Thumbnails("slide", tr("Slides"), pairs, state.design, key, _slide_items(state))
    notes = Entry(f"notes.{key}", tr("Notes"), slide.notes, lines=2, hint=tr("Notes"))
    return Column(
        _menus(state),
        _tools(state),
        Divider(),
        Row(small, Column(SlideArea(title, points, design), notes, grow=1, gap=0), gap=0, grow=1),
        Row(Label(place, "small", grow=1), Label(tr(design.label), "small")),
        gap=0,
    )


def _show(state: Slides, place: str) -> Widget:
    is_first, is_last = state.at == 0, state.at == len(state.slides) - 1
    return Column(
        Show("show", state.slide, state.design),
        Row(
            tool_button("show.back", tr("Back"), "back", enabled=not is_first),
            tool_button("show.next", tr("Next"), "next", enabled=not is_last),
            Label(place, "small", grow=1),
            tool_button("show.end", tr("End slide show"), "close"),
        ),
        gap=0,
    )


def _slide_items(state: Slides) -> tuple[MenuItem, ...]:
    """What can be done with a slide."""
    return (
        MenuItem("new_slide", tr("New slide"), "ctrl+m"),
        MenuItem("duplicate", tr("Duplicate slide"), "ctrl+d"),
        MenuItem("delete", tr("Delete slide"), "delete", enabled=len(state.slides) > 1),
        SEPARATOR,
        MenuItem("up", tr("Move slide up"), "ctrl+shift+up", enabled=state.at > 0),
        MenuItem("down", tr("Move slide down"), "ctrl+shift+down", enabled=state.at < len(state.slides) - 1),
    )


def _menus(state: Slides) -> MenuBar:
    undo = MenuItem("undo", tr("Undo slide change"), "ctrl+alt+z", enabled=bool(state.before))
    show = MenuItem("show", tr("Start slide show"), "f5")
    return MenuBar(
        documents.file_menu(),
        ("edit", tr("Edit"), (*edit_items(), SEPARATOR, undo)),
        ("slide", tr("Slide"), (*_slide_items(state), SEPARATOR, show)),
    )


def _tools(state: Slides) -> Widget:
    designs = tuple((key, tr(design.label)) for key, design in DESIGNS.items())
    tools = tool_bar(
        tool_button("open", tr("Open"), "open"),
        tool_button("save", tr("Save"), "save"),
        tool_button("new_slide", tr("New slide"), "slide_new"),
        tool_button("delete", tr("Delete slide"), "trash", enabled=len(state.slides) > 1),
        tool_button("show", tr("Start slide show"), "slide_show"),
    )
    return Row(tools, Space(), Choice("design", tr("Design"), designs, state.design))
