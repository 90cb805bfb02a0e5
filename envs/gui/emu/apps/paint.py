"""Paint: an image, a few tools, ten colours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from vlrl.envs.gui.emu.app import App, Reader, System, register
from vlrl.envs.gui.emu.apps.parts import documents
from vlrl.envs.gui.emu.apps.parts.canvas import (
    COLOURS,
    NUMBERS,
    Bitmap,
    blank,
    coloured,
    filled,
    rectangle,
    stroke,
)
from vlrl.envs.gui.emu.apps.parts.documents import Document
from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS, NAMED
from vlrl.envs.gui.emu.input.events import Command, Event, Stroke
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets import (
    Canvas,
    Choice,
    Column,
    Grid,
    Label,
    MenuBar,
    MenuItem,
    Row,
    Space,
    Widget,
    tool_bar,
    tool_button,
)

SIZE = (300, 200)
MAX_SIDE = 4096
"""Strokes may leave the canvas, but no further than this."""
UNDO_STEPS = 30
SHEET = blank(*SIZE)
add_words("""
Paint = Malen = Dessin = Dibujo
Image = Bild = Image = Imagen
Pen = Stift = Stylo = Lápiz
Line = Linie = Ligne = Línea
Rectangle = Rechteck = Rectangle = Rectángulo
Fill = Füllen = Remplir = Rellenar
Eraser = Radiergummi = Gomme = Goma
Thickness = Strichstärke = Épaisseur = Grosor
white = weiß = blanc = blanco
black = schwarz = noir = negro
grey = grau = gris = gris
brown = braun = marron = marrón
red = rot = rouge = rojo
orange = orange = orange = naranja
yellow = gelb = jaune = amarillo
green = grün = vert = verde
blue = blau = bleu = azul
purple = lila = violet = morado
""")
TOOLS = {"pen": "Pen", "line": "Line", "rectangle": "Rectangle", "fill": "Fill", "eraser": "Eraser"}
ICONS["pen"] = (
    ("orange", "poly", (4, 17, 16, 3, 21, 8, 8, 21)),
    ("dark", "poly", (4, 17, 8, 21, 2, 22)),
)
ICONS["line"] = (("ink", "poly", (3, 19, 19, 3, 21, 5, 5, 21)),)
ICONS["rectangle"] = (("ink", "box", (3, 5, 21, 19)), ("behind", "box", (5, 7, 19, 17)))
ICONS["fill"] = (
    ("grey", "poly", (11, 4, 20, 13, 11, 21, 3, 13)),
    ("blue", "poly", (5, 13, 18, 13, 11, 20)),
    ("blue", "disc", (20.5, 18.5, 2.6)),
)
ICONS["eraser"] = (
    ("red", "poly", (9, 4, 21, 12, 17, 18, 5, 10)),
    ("white", "poly", (5, 10, 17, 18, 14, 22, 2, 14)),
    ("grey", "poly", (2, 14, 14, 22, 13, 23, 1, 15)),
)
for _name, _colour in COLOURS.items():
    NAMED[f"paint_{_name}"] = _colour
    ICONS[f"paint_{_name}"] = (("grey", "box", (1, 1, 23, 23)), (f"paint_{_name}", "box", (2, 2, 22, 22)))


@dataclass(frozen=True)
class Paint(Document):
    """What is painted.

    Attributes:
        image: as it is now.
        before: earlier images, the last one last.
        thickness: of lines, in pixels.
    """

    saved: Bitmap = SHEET
    image: Bitmap = SHEET
    before: tuple[Bitmap, ...] = ()
    tool: str = "pen"
    colour: str = "black"
    thickness: int = 3
    home = "/Pictures"
    suggested = ("Picture", ".png")

    @classmethod
    def parsed(cls, stored: Any) -> Bitmap | None:
        """The image of a file."""
        return stored if isinstance(stored, Bitmap) else None

    @property
    def content(self) -> Bitmap:
        """The image."""
        return self.image

    def holding(self, content: Bitmap) -> Self:
        """State with another image."""
        return replace(self, image=content)

    def emptied(self) -> Self:
        """A white sheet, the same tool in hand."""
        return type(self)(tool=self.tool, colour=self.colour, thickness=self.thickness)


def build(state: Paint, reader: Reader) -> Widget:
    """Menus, tools, the image, the colours."""
    menus = MenuBar(
        documents.file_menu(),
        ("edit", tr("Edit"), (MenuItem("undo", tr("Undo"), "ctrl+z", enabled=bool(state.before)),)),
    )
    tools = tool_bar(
        *(tool_button(key, tr(name), key, pressed=state.tool == key) for key, name in TOOLS.items()),
        tool_button("undo", tr("Undo"), "undo", enabled=bool(state.before)),
        tool_button("save", tr("Save"), "save"),
    )
    sizes = tuple((size, f"{size} px") for size in (1, 3, 6, 12))
    colours = (
        tool_button(f"colour.{name}", tr(name), f"paint_{name}", pressed=state.colour == name)
        for name in COLOURS
    )
    canvas = Canvas("canvas", tr("Picture"), coloured, state.image, state.image[:2])
    return Column(
        menus,
        Row(tools, Space(), Choice("thickness", tr("Thickness"), sizes, state.thickness), pad=0),
        Row(Space(), canvas, Space()),
        Row(Space(), Grid(5, *colours, gap=0), Label(tr(state.colour), "small", width=56), Space()),
        Space(),
        gap=1,
    )


def handle(state: Paint, event: Event, system: System) -> Paint:
    """Paint, choose, undo; the rest is about files."""
    match event:
        case Stroke("canvas", path):
            return _painted(state, path)
        case Command("undo") if state.before:
            return replace(state, image=state.before[-1], before=state.before[:-1])
        case Command(id) if id in TOOLS:
            return replace(state, tool=id)
        case Command(id) if id.startswith("colour."):
            return replace(state, colour=id.removeprefix("colour."))
    return documents.handle(state, event, system)


def _painted(state: Paint, path: tuple[tuple[int, int], ...]) -> Paint:
    path = tuple((min(max(-MAX_SIDE, x), MAX_SIDE), min(max(-MAX_SIDE, y), MAX_SIDE)) for x, y in path)
    colour, image = NUMBERS[state.colour], state.image
    match state.tool:
        case "fill":
            image = filled(image, path[-1], colour)
        case "line":
            image = stroke(image, (path[0], path[-1]), colour, state.thickness)
        case "rectangle":
            image = rectangle(image, path[0], path[-1], colour, state.thickness)
        case "eraser":
            image = stroke(image, path, NUMBERS["white"], 4 * state.thickness)
        case _:
            image = stroke(image, path, colour, state.thickness)
    if image == state.image:
        return state
    return replace(state, image=image, before=(*state.before, state.image)[-UNDO_STEPS:])


PAINT = register(
    App(
        "paint",
        "Paint",
        "paint",
        Paint.start,
        build,
        handle,
        title=documents.title,
        size=(330, 320),
        opens=(".png",),
    )
)
