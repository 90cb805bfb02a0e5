"""Draw the emulated desktop in each widget family for docs/gui_looks.md, and print its table of elements.

.venv/bin/python tools/gui_looks.py --out docs/images
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vlrl.envs.gui.actions import Drag, OpenApp, Wait
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.drawing.look import LOOK_SETTINGS
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.families import FAMILIES
from vlrl.types import ByteArray

SIZE = (640, 480)
LOOKS = {name: value for name, value in LOOK_SETTINGS.items() if name not in ("form", "theme", "widgets")} | {
    "wallpaper": "glow",
    "windows": "one",
}
APPS = ("contacts", "browser", "settings")
ROLES = (
    "button",
    "menuitem",
    "textbox",
    "checkbox",
    "combobox",
    "slider",
    "tab",
    "option",
    "heading",
    "toolbar",
)


def desktop_of(family: str, theme: str) -> Desktop:
    """A desktop with a few apps open, one over the other."""
    desktop = EmuEnv(size=SIZE, widgets=family, theme=theme, **LOOKS).backend
    assert isinstance(desktop, Desktop)
    desktop.reset({"name": "settings/volume", "difficulty": 1}, 1)
    for app in APPS:
        desktop.perform(OpenApp(app))
    front = desktop.world.windows[-1]
    desktop.perform(Drag(((front.box[0] + 220, front.box[1] + 14), (front.box[0] + 310, front.box[1] + 90))))
    return desktop


def boxes_by_role(desktop: Desktop) -> dict[str, list[tuple[int, int]]]:
    """(width, height) of every element that can be seen."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for element in desktop.elements():
        if not element.states & {"hidden", "covered"}:
            x0, y0, x1, y1 = element.box
            found[element.role].append((x1 - x0, y1 - y0))
    return found


def cell(boxes: list[tuple[int, int]]) -> str:
    """How many there are, and the median width and height."""
    if not boxes:
        return "–"
    wide, high = (round(statistics.median(box[axis] for box in boxes)) for axis in (0, 1))
    return f"{len(boxes)}: {wide}×{high}"


def pair(light: Desktop, dark: Desktop) -> Image.Image:
    """Both screens side by side."""
    return beside(*(desktop.perform(Wait(0)).pixels for desktop in (light, dark)))


def played(name: str, level: int, num_steps: int, **options: Any) -> ByteArray:
    """What is seen of a task in which the oracle has done some steps."""
    desktop = EmuEnv(**{**LOOKS, "widgets": "fluent", "theme": "daylight", **options}).backend
    assert isinstance(desktop, Desktop)
    desktop.reset({"name": name, "difficulty": level}, 3)
    for _ in range(num_steps):
        desktop.perform(desktop.oracle())
    return desktop.perform(Wait(0)).pixels


def pages() -> Image.Image:
    """A page with its cookies' banner, and the same with its images and without the banner."""
    return beside(*(played("forms/cart", 1, steps, size=SIZE, pages="dense") for steps in (7, 8)))


def phones() -> Image.Image:
    """The keyboard of a phone: in a form, in a note, over a page's newsletter."""
    phone = {"form": "mobile", "keyboard": "screen"}
    other = {**phone, "widgets": "aqua", "theme": "midnight"}
    note = played("editor/replace_text", 1, 3, **other)
    return beside(played("contacts/add", 1, 4, **phone), note, played("web/newsletter", 1, 9, **phone))


def beside(*screens: ByteArray) -> Image.Image:
    """Screens side by side."""
    return Image.fromarray(np.concatenate(screens, axis=1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    folder = parser.parse_args().out
    columns = {}
    for family in FAMILIES:
        light, dark = desktop_of(family, "daylight"), desktop_of(family, "midnight")
        columns[family] = boxes_by_role(light)
        pair(light, dark).save(folder / f"gui_looks_{family}.png", optimize=True)
    pages().save(folder / "gui_looks_pages.png", optimize=True)
    phones().save(folder / "gui_looks_keyboard.png", optimize=True)
    print(f"| role | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    totals = (str(sum(map(len, boxes.values()))) for boxes in columns.values())
    print(f"| all that can be seen | {' | '.join(totals)} |")
    for role in ROLES:
        print(f"| {role} | {' | '.join(cell(boxes[role]) for boxes in columns.values())} |")


if __name__ == "__main__":
    main()
