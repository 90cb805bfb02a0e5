"""The keyboard on a phone's screen: pages of keys, by the language of the desktop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from vlrl.envs.gui.emu.drawing.icon_shapes import ICONS
from vlrl.envs.gui.emu.drawing.icons import icon as icon_painter
from vlrl.envs.gui.emu.drawing.look import Look
from vlrl.envs.gui.emu.drawing.rasters import fill, plate
from vlrl.envs.gui.emu.drawing.theme import Colour, mix
from vlrl.envs.gui.emu.state import Box
from vlrl.envs.gui.emu.strings import add_words, tr
from vlrl.envs.gui.emu.widgets.base import Item, View, Widget
from vlrl.envs.gui.emu.windows import wm

add_words("""
Shift = Umschalttaste = Majuscule = Mayúsculas
Backspace = Rücktaste = Effacer = Retroceso
Enter = Eingabetaste = Entrée = Intro
Space = Leertaste = Espace = Espacio
Symbols = Sonderzeichen = Symboles = Símbolos
More symbols = Weitere Sonderzeichen = Autres symboles = Más símbolos
Letters|keys = Buchstaben = Lettres = Letras
Keyboard = Tastatur = Clavier = Teclado
""")
ICONS["shift"] = (("ink", "poly", (12, 3, 21, 13, 16, 13, 16, 20, 8, 20, 8, 13, 3, 13)),)
ICONS["erase"] = (
    ("ink", "poly", (8, 5, 22, 5, 22, 19, 8, 19, 2, 12)),
    ("behind", "poly", (11, 8, 13, 8, 18, 15, 18, 16, 16, 16, 11, 9)),
    ("behind", "poly", (18, 8, 18, 9, 13, 16, 11, 16, 11, 15, 16, 8)),
)
ICONS["enter"] = (("ink", "poly", (3, 14, 9, 8, 9, 12, 18, 12, 18, 5, 21, 5, 21, 16, 9, 16, 9, 20)),)
KEYBOARD = "keyboard"
LETTERS: Mapping[str, tuple[str, str, str]] = {
    "en": ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "de": ("qwertzuiopü", "asdfghjklöä", "yxcvbnm"),
    "fr": ("azertyuiop", "qsdfghjklm", "wxcvbné"),
    "es": ("qwertyuiop", "asdfghjklñ", "zxcvbnm"),
}
SYMBOLS = ("1234567890", "@#€_&-+()/", "*\"':;!?")
MORE = ("~`|•√π÷×§∆", "£$¢^°={}\\%", "©<>[]„“")
ROW_OF_200, ROWS = 13, 4
"""Height of a row of keys, in 200ths of the screen's."""
SHIFT, ERASE, ENTER, SPACE, OTHER, MORE_KEY = "shift", "erase", "enter", "space", "page", "more"
"""Names of the keys that are no letters; OTHER changes between letters and symbols."""
LABELS: Mapping[str, str] = {"lower": "?123", "upper": "?123", "symbols": "ABC", "more": "ABC"}


@dataclass(slots=True, kw_only=True)
class KeyCap(Widget):
    """A key.

    Attributes:
        label: what is written on it, or an image's name if it is one of ICONS.
        kind: a letter, one of the "darker" others, or the one in the "accent".
    """

    label: str
    kind: str
    role: ClassVar[str] = "button"

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """The cap."""
        look, colours = view.look, view.look.palette
        behind = ground(look)
        caps: Mapping[str, tuple[Colour, Colour]] = {
            "letter": (colours.field, colours.text),
            "darker": (mix(colours.button, colours.border, 70), colours.text),
            "accent": (colours.accent, colours.accent_text),
        }
        inside, ink = caps[self.kind]
        radius = look.scaled(5)
        if self.label not in ICONS:
            items.append((*box, clip, plate, (behind, inside, None, radius, self.label, look.font, ink)))
            return
        items.append((*box, clip, plate, (behind, inside, None, radius)))
        side = min(look.line, box[2] - box[0] - 2, box[3] - box[1] - 2)
        left, top = (box[0] + box[2] - side) // 2, (box[1] + box[3] - side) // 2
        items.append((left, top, left + side, top + side, clip, icon_painter, (self.label, ink, inside)))


@dataclass(slots=True, kw_only=True)
class Keys(Widget):
    """All keys of a page; each letter's id is "key:" and the letter."""

    page: str
    language: str
    role: ClassVar[str] = "toolbar"

    def place(self, view: View, box: Box, clip: Box) -> None:
        """Four rows, all letters equally wide."""
        view.add(self, box, clip)
        edge, rows = view.look.unit // 2, rows_of(self.page, self.language)
        wide, high = box[2] - box[0] - 2 * edge, box[3] - box[1] - 2 * edge
        most = max(map(len, rows))
        for index, row in enumerate(rows):
            top, bottom = (box[1] + edge + high * n // ROWS for n in (index, index + 1))
            caps = [_letter(letter) for letter in row]
            shares = [2] * len(caps)
            if index == 2:
                caps, shares = [_left_of(self.page), *caps, _cap(ERASE, "Backspace")], [3, *shares, 3]
            self._row(view, (box[0] + edge, top, wide, bottom), caps, shares, 2 * most)
        other = KeyCap(
            id=f"key:{OTHER}",
            name=tr("Letters|keys" if self.page in ("symbols", "more") else "Symbols"),
            label=LABELS[self.page],
            kind="darker",
        )
        space = KeyCap(id=f"key:{SPACE}", name=tr("Space"), label="", kind="letter")
        enter = _cap(ENTER, "Enter", "accent")
        last = [other, _letter(","), space, _letter("."), enter]
        top = box[1] + edge + high * (ROWS - 1) // ROWS
        self._row(view, (box[0] + edge, top, wide, box[3] - edge), last, [3, 2, 10, 2, 3], 20)

    def _row(self, view: View, at: Box, caps: list[KeyCap], shares: list[int], whole: int) -> None:
        """Place keys in the middle of a row (left, top, width, bottom) that has `whole` shares of room."""
        left, top, wide, bottom = at
        gap = max(1, view.look.unit // 4)
        first = max(0, whole - sum(shares))
        whole = max(whole, sum(shares))
        for cap, share in zip(caps, shares, strict=True):
            x0, x1 = (left + wide * (first + 2 * n) // (2 * whole) for n in (0, share))
            first += 2 * share
            cap.place(view, (x0 + gap, top + gap, x1 - gap, bottom - gap), view.placed[0].clip)

    def paint(self, items: list[Item], box: Box, clip: Box, view: View) -> None:
        """What lies behind the keys."""
        items.append((*box, clip, fill, (ground(view.look),)))


def keyboard(page: str, language: str) -> Keys:
    """The keyboard at a page."""
    return Keys(id=KEYBOARD, name=tr("Keyboard"), page=page, language=language)


def rows_of(page: str, language: str) -> tuple[str, str, str]:
    """What the keys of a page write, row by row; comma and full stop are on every page."""
    if page in ("symbols", "more"):
        return SYMBOLS if page == "symbols" else MORE
    first, second, third = LETTERS[language]
    return (first, second, third) if page == "lower" else (first.upper(), second.upper(), third.upper())


def keyboard_box(look: Look, size: tuple[int, int]) -> Box:
    """Where it is: above a phone's buttons."""
    bottom = size[1] - wm.bar_size(look)
    return 0, bottom - ROWS * (size[1] * ROW_OF_200 // 200), size[0], bottom


def ground(look: Look) -> Colour:
    """What lies behind the keys."""
    return mix(look.palette.window, look.palette.border, 45)


def _letter(letter: str) -> KeyCap:
    return KeyCap(id=f"key:{letter}", name=letter, label=letter, kind="letter")


def _cap(key: str, name: str, kind: str = "darker") -> KeyCap:
    return KeyCap(id=f"key:{key}", name=tr(name), label=key, kind=kind)


def _left_of(page: str) -> KeyCap:
    """The key at the left of the third row."""
    if page in ("symbols", "more"):
        label, name = ("=\\<", "More symbols") if page == "symbols" else ("?123", "Symbols")
        return KeyCap(id=f"key:{MORE_KEY}", name=tr(name), label=label, kind="darker")
    return _cap(SHIFT, "Shift", "accent" if page == "upper" else "darker")
