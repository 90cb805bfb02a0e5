"""Rasterise the fonts of the emulated desktop into envs/gui/emu/drawing/glyphs.npz, once.

So no machine's FreeType decides what a pixel is. The fonts are those that matplotlib ships; their licences go
next to the atlas.

    .venv/bin/python tools/make_glyphs.py
"""

from __future__ import annotations

import shutil
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.ft2font import FT2Font
from PIL import Image, ImageDraw, ImageFont

FONTS = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
TARGET = Path(__file__).parent.parent / "envs" / "gui" / "emu" / "drawing" / "glyphs.npz"
LICENSES = ("LICENSE_DEJAVU", "LICENSE_STIX")
FAMILIES = {
    "sans": ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"),
    "serif": ("DejaVuSerif.ttf", "DejaVuSerif-Bold.ttf"),
    "mono": ("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf"),
    "roman": ("STIXGeneral.ttf", "STIXGeneralBol.ttf"),
}
LARGER = {"roman": 2}
"""Pixels by which a family is drawn larger than it is called, to look as large as the others."""
SIZES = (10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 32, 38)
OTHERS = "ŒœŠšŸŽž–—‘’‚“”„•…‹›€™←↑→↓↔−≈≠≤≥▲▼◀▶▴▾◂▸■□▪●○◦★☆☰✓✔✕✖✗─│┌┐└┘├┤┬┴┼↩↪⌂⏎"
CHARACTERS = "".join(map(chr, [*range(32, 127), *range(160, 256)])) + OTHERS


def cells(path: Path, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Every character in a cell as wide as its advance, side by side, and the advances."""
    font, fallback = (
        ImageFont.truetype(str(path), size),
        ImageFont.truetype(str(FONTS / "DejaVuSans.ttf"), size),
    )
    known = FT2Font(str(path))
    ascent, descent = font.getmetrics()
    strips, advances = [], []
    for character in CHARACTERS:
        drawn = font if known.get_char_index(ord(character)) else fallback
        advance = max(1, round(drawn.getlength(character)))
        cell = Image.new("L", (advance, ascent + descent))
        ImageDraw.Draw(cell).text((0, ascent), character, fill=255, font=drawn, anchor="ls")
        strips.append(np.asarray(cell))
        advances.append(advance)
    atlas = np.concatenate(strips, axis=1)
    shades = (atlas.astype(np.uint16) + 8) // 17 * 17  # 16 of them pack well
    return shades.astype(np.uint8), np.array(advances, np.uint8)


def main() -> None:
    members = {"characters": np.array([ord(character) for character in CHARACTERS], np.uint32)}
    for family, files in FAMILIES.items():
        for style, file in zip(("regular", "bold"), files, strict=True):
            for size in SIZES:
                atlas, advances = cells(FONTS / file, size + LARGER.get(family, 0))
                members[f"{family}-{style}-{size}-atlas"] = atlas
                members[f"{family}-{style}-{size}-advances"] = advances
    np.savez_compressed(TARGET, **members)
    for name in LICENSES:
        shutil.copy(FONTS / name, TARGET.with_name(f"glyphs.{name}"))
    print(f"{TARGET}: {TARGET.stat().st_size / 1e6:.2f} MB, {len(CHARACTERS)} characters")


if __name__ == "__main__":
    main()
