"""What the small images are made of."""

from __future__ import annotations

from typing import TypeAlias

from vlrl.envs.gui.emu.drawing.theme import Colour

Shape: TypeAlias = tuple[str, str, tuple[float, ...]]
"""(colour, kind, numbers): "box" x0 y0 x1 y1, "disc" x y radius, "ring" x y outer inner, "poly" x y x y …"""
GRID = 24
NAMED: dict[str, Colour] = {
    "blue": (58, 124, 214),
    "sky": (142, 190, 240),
    "green": (62, 160, 92),
    "red": (214, 72, 66),
    "orange": (236, 146, 50),
    "yellow": (246, 204, 92),
    "sand": (222, 170, 60),
    "purple": (134, 88, 190),
    "teal": (40, 152, 156),
    "grey": (136, 146, 158),
    "dark": (62, 70, 82),
    "white": (252, 252, 252),
    "paper": (236, 240, 245),
}
"""What a shape may be coloured, besides "ink", the colour of the text around it."""

_SHEET: tuple[Shape, ...] = (
    ("grey", "poly", (4, 1, 15, 1, 21, 7, 21, 23, 4, 23)),
    ("white", "poly", (5, 2, 14.5, 2, 20, 7.5, 20, 22, 5, 22)),
    ("grey", "poly", (14, 2, 20, 8, 14, 8)),
)
_LINES: tuple[Shape, ...] = tuple(("grey", "box", (7, y, 18, y + 1.2)) for y in (11, 14, 17))
ICONS: dict[str, tuple[Shape, ...]] = {
    "file": _SHEET,
    "text": (*_SHEET, *_LINES),
    "sheet": (
        *_SHEET,
        ("green", "box", (7, 10, 18, 19)),
        *(("white", "box", (7.8, y, 17.2, y + 1.8)) for y in (11, 13.7, 16.4)),
    ),
    "picture": (
        ("grey", "box", (2, 4, 22, 20)),
        ("sky", "box", (3, 5, 21, 19)),
        ("yellow", "disc", (8, 9, 2)),
        ("green", "poly", (3, 19, 10, 11, 15, 16, 18, 13, 21, 16, 21, 19)),
    ),
    "folder": (
        ("sand", "poly", (2, 4, 10, 4, 12, 7, 22, 7, 22, 20, 2, 20)),
        ("yellow", "box", (2, 9, 22, 20)),
    ),
    "files": (
        ("blue", "poly", (2, 4, 10, 4, 12, 7, 22, 7, 22, 20, 2, 20)),
        ("sky", "box", (2, 10, 22, 20)),
    ),
    "editor": (
        ("blue", "box", (3, 2, 21, 22)),
        ("white", "box", (5, 4, 19, 20)),
        *(("grey", "box", (7, y, 17, y + 1.4)) for y in (7, 10.5, 14)),
        ("orange", "poly", (12, 18, 19, 9, 22, 11, 15, 20, 12, 21)),
    ),
    "settings": (
        ("grey", "poly", (10, 1, 14, 1, 14, 23, 10, 23)),
        ("grey", "poly", (1, 10, 23, 10, 23, 14, 1, 14)),
        ("grey", "poly", (3, 6, 6, 3, 21, 18, 18, 21)),
        ("grey", "poly", (18, 3, 21, 6, 6, 21, 3, 18)),
        ("grey", "disc", (12, 12, 8)),
        ("white", "disc", (12, 12, 4)),
    ),
    "calculator": (
        ("dark", "box", (4, 1, 20, 23)),
        ("sky", "box", (6, 3, 18, 8)),
        *(("white", "box", (x, y, x + 3, y + 3)) for x in (6, 10.5, 15) for y in (10, 14.2, 18.4)),
    ),
    "mail": (
        ("red", "box", (1, 5, 23, 20)),
        ("white", "box", (2, 6, 22, 19)),
        ("red", "poly", (2, 6, 12, 14, 22, 6, 22, 8, 12, 16, 2, 8)),
    ),
    "spreadsheet": (
        ("green", "box", (2, 3, 22, 21)),
        ("white", "box", (4, 8, 20, 19)),
        *(("green", "box", (x, 8, x + 1, 19)) for x in (9, 14.5)),
        *(("green", "box", (4, y, 20, y + 1)) for y in (11.2, 15)),
    ),
    "paint": (
        ("orange", "disc", (11, 13, 10)),
        ("white", "disc", (13, 18, 2.4)),
        ("red", "disc", (6, 11, 2)),
        ("blue", "disc", (11, 7, 2)),
        ("green", "disc", (16, 10, 2)),
        ("dark", "poly", (15, 13, 22, 2, 23.5, 3, 18, 15)),
    ),
    "browser": (
        ("teal", "disc", (12, 12, 11)),
        ("white", "ring", (12, 12, 9.6, 8.4)),
        ("white", "box", (2.6, 11.4, 21.4, 12.6)),
        ("white", "box", (11.4, 2.6, 12.6, 21.4)),
        ("white", "ring", (12, 12, 5, 4)),
    ),
    "calendar": (
        ("red", "box", (2, 3, 22, 9)),
        ("grey", "box", (2, 9, 22, 22)),
        ("white", "box", (3, 9, 21, 21)),
        *(("dark", "box", (x, y, x + 2.4, y + 2.4)) for x in (5.5, 10.5, 15.5) for y in (11.5, 16)),
    ),
    "contacts": (
        ("purple", "box", (3, 2, 21, 22)),
        ("white", "disc", (12, 9, 4)),
        ("white", "poly", (5, 20, 6, 15, 10, 13.4, 14, 13.4, 18, 15, 19, 20)),
    ),
    "clock": (
        ("dark", "disc", (12, 12, 11)),
        ("white", "disc", (12, 12, 9)),
        ("dark", "box", (11.2, 5.5, 12.8, 12.8)),
        ("red", "poly", (11.4, 11.4, 17, 15, 16.2, 16.4, 11, 13)),
    ),
    "notes": (
        ("sand", "box", (3, 2, 21, 22)),
        ("yellow", "box", (3, 6, 21, 22)),
        *(("sand", "box", (6, y, 18, y + 1.3)) for y in (10, 13.5, 17)),
    ),
    "tasks": (
        ("teal", "box", (3, 2, 21, 22)),
        *(("white", "box", (6, y, 9, y + 3)) for y in (5, 10.5, 16)),
        *(("white", "box", (11, y + 0.8, 18, y + 2.2)) for y in (5, 10.5, 16)),
    ),
    "music": (
        ("purple", "disc", (12, 12, 11)),
        ("white", "poly", (9, 5, 18, 4, 18, 15, 16.4, 15, 16.4, 7, 10.6, 7.8, 10.6, 17, 9, 17)),
        ("white", "disc", (8.4, 16.8, 2.6)),
        ("white", "disc", (15.8, 15, 2.6)),
    ),
    "trash": (
        ("grey", "box", (4, 4, 20, 6.4)),
        ("grey", "box", (9, 2, 15, 4)),
        ("grey", "poly", (5, 8, 19, 8, 18, 22, 6, 22)),
        *(("white", "box", (x, 10, x + 1.4, 20)) for x in (8.3, 11.3, 14.3)),
    ),
    "info": (
        ("blue", "disc", (12, 12, 11)),
        ("white", "box", (10.6, 10, 13.4, 18)),
        ("white", "disc", (12, 7, 1.7)),
    ),
    "question": (
        ("blue", "disc", (12, 12, 11)),
        ("white", "ring", (12, 9, 4.6, 2.4)),
        ("blue", "poly", (7, 9, 11, 9, 11, 14, 7, 14)),
        ("white", "box", (10.9, 12.6, 13.1, 15.4)),
        ("white", "disc", (12, 18, 1.5)),
    ),
    "warning": (
        ("orange", "poly", (12, 1.5, 23, 22, 1, 22)),
        ("white", "box", (10.8, 8, 13.2, 15.5)),
        ("white", "disc", (12, 18.6, 1.5)),
    ),
    "plus": (("ink", "box", (11, 5, 13, 19)), ("ink", "box", (5, 11, 19, 13))),
    "minus": (("ink", "box", (5, 11, 19, 13)),),
    "close": (
        ("ink", "poly", (5, 6.4, 6.4, 5, 19, 17.6, 17.6, 19)),
        ("ink", "poly", (17.6, 5, 19, 6.4, 6.4, 19, 5, 17.6)),
    ),
    "minimize": (("ink", "box", (5, 16, 19, 18)),),
    "maximize": (("ink", "box", (5, 5, 19, 19)), ("behind", "box", (7, 8, 17, 17))),
    "restore": (
        ("ink", "box", (8, 4, 20, 16)),
        ("behind", "box", (10, 7, 18, 14)),
        ("ink", "box", (4, 8, 16, 20)),
        ("behind", "box", (6, 11, 14, 18)),
    ),
    "menu": tuple(("ink", "box", (4, y, 20, y + 2)) for y in (6, 11, 16)),
    "apps": tuple(("ink", "box", (x, y, x + 4, y + 4)) for x in (4, 10, 16) for y in (4, 10, 16)),
    "home": (("ink", "poly", (12, 3, 22, 12, 19, 12, 19, 21, 5, 21, 5, 12, 2, 12)),),
    "back": (("ink", "poly", (16, 3, 18, 5, 11, 12, 18, 19, 16, 21, 7, 12)),),
    "next": (("ink", "poly", (8, 3, 6, 5, 13, 12, 6, 19, 8, 21, 17, 12)),),
    "up": (("ink", "poly", (12, 4, 20, 12, 14, 12, 14, 20, 10, 20, 10, 12, 4, 12)),),
    "search": (("ink", "ring", (10, 10, 7, 5)), ("ink", "poly", (14, 16, 16, 14, 22, 20, 20, 22))),
    "save": (
        ("blue", "poly", (3, 3, 18, 3, 21, 6, 21, 21, 3, 21)),
        ("white", "box", (7, 3, 16, 9)),
        ("blue", "box", (12.6, 4, 14.8, 8)),
        ("white", "box", (6, 12, 18, 21)),
    ),
    "new": (*_SHEET, ("green", "box", (10.6, 10, 13.4, 20)), ("green", "box", (7.4, 13.4, 16.6, 16.4))),
    "open": (
        ("sand", "poly", (2, 4, 9, 4, 11, 7, 20, 7, 20, 20, 2, 20)),
        ("yellow", "poly", (6, 11, 23, 11, 19, 20, 2, 20)),
    ),
    "cut": (
        ("ink", "poly", (5, 3, 7, 2, 15, 15, 13, 16)),
        ("ink", "poly", (17, 2, 19, 3, 11, 16, 9, 15)),
        ("ink", "ring", (7, 18, 4, 2)),
        ("ink", "ring", (17, 18, 4, 2)),
    ),
    "copy": (
        ("ink", "box", (3, 3, 15, 17)),
        ("behind", "box", (4.6, 4.6, 13.4, 15.4)),
        ("ink", "box", (9, 7, 21, 21)),
        ("behind", "box", (10.6, 8.6, 19.4, 19.4)),
    ),
    "paste": (
        ("ink", "box", (3, 4, 18, 21)),
        ("behind", "box", (5, 6, 16, 19)),
        ("ink", "box", (7, 2, 14, 7)),
        ("ink", "box", (11, 10, 22, 23)),
        ("behind", "box", (12.5, 11.5, 20.5, 21.5)),
    ),
    "undo": (
        ("ink", "ring", (13, 13, 8, 6)),
        ("behind", "box", (3, 13, 13, 23)),
        ("ink", "poly", (1, 13, 11, 13, 6, 19)),
    ),
    "send": (("blue", "poly", (2, 3, 23, 12, 2, 21, 5, 12)),),
    "reply": (("ink", "poly", (2, 11, 10, 4, 10, 9, 20, 11, 22, 19, 18, 14.5, 10, 14, 10, 18)),),
    "star": (("yellow", "poly", (12, 1, 15, 9, 23, 9, 17, 14, 19, 22, 12, 17, 5, 22, 7, 14, 1, 9, 9, 9)),),
    "lock": (
        ("dark", "ring", (12, 9, 6, 4)),
        ("sand", "box", (4, 10, 20, 22)),
        ("dark", "disc", (12, 15, 2)),
        ("dark", "box", (11, 15, 13, 19)),
    ),
    "circle": (("ink", "ring", (12, 12, 9, 7)),),
    "square": (("ink", "box", (5, 5, 19, 19)),),
    "battery": (
        ("ink", "box", (2, 8, 20, 17)),
        ("behind", "box", (3.6, 9.6, 18.4, 15.4)),
        ("ink", "box", (4.6, 10.6, 15, 14.4)),
        ("ink", "box", (20, 10.6, 22, 14.4)),
    ),
}
"""An app's file may add its own."""
