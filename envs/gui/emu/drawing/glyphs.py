"""Letters, rasterised beforehand by tools/make_glyphs.py: what a pixel is, no machine's FreeType decides."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from vlrl.types import ByteArray

FAMILIES = ("sans", "serif", "mono", "roman")
SIZES = (10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 32, 38)
HEADINGS = (10, 11, 12, 13, 14, 15, 16, 18, 20, 24, 28, 32, 38)
"""Those of headings."""
MISSING = "□"
"""Drawn for a character that the atlas does not have."""


class Font(NamedTuple):
    """One of FAMILIES at one of SIZES, in pixels."""

    family: str = "sans"
    size: int = 13
    bold: bool = False


class Face:
    """A font's letters.

    Attributes:
        height: of a line, in pixels.
        advances: character → width in pixels; any character may be asked for.
    """

    def __init__(self, atlas: ByteArray, advances: ByteArray, characters: list[str]) -> None:
        """Cut the atlas up.

        Args:
            atlas: [height, sum of advances] coverage, the letters side by side.
            advances: [num_characters].
            characters: the letters in the same order.
        """
        self.height = atlas.shape[0]
        ends = np.cumsum(advances.astype(np.int64)).tolist()
        starts = [0, *ends[:-1]]
        letters = {c: atlas[:, a:b] for c, a, b in zip(characters, starts, ends, strict=True)}
        self._letters = _Letters(letters)
        self.advances = _Advances({c: letter.shape[1] for c, letter in letters.items()})

    def width(self, text: str) -> int:
        """Width of one line in pixels."""
        return sum(map(self.advances.__getitem__, text))

    def coverage(self, text: str) -> ByteArray:
        """[height, width] uint8 of a line that is not empty."""
        return np.concatenate([self._letters[c] for c in text], axis=1)


class _Letters(dict[str, ByteArray]):
    def __missing__(self, character: str) -> ByteArray:
        return self[MISSING]


class _Advances(dict[str, int]):
    def __missing__(self, character: str) -> int:
        return self[MISSING]


@lru_cache(maxsize=128)
def face(font: Font) -> Face:
    """Load a font's letters."""
    style = "bold" if font.bold else "regular"
    member, atlas = f"{font.family}-{style}-{font.size}", _atlas()
    characters = [chr(code) for code in atlas["characters"]]
    return Face(atlas[f"{member}-atlas"], atlas[f"{member}-advances"], characters)


@lru_cache(maxsize=1)
def _atlas() -> dict[str, npt.NDArray[Any]]:
    """All of it: 6 MB, read once, so that no reset waits for a font."""
    with np.load(str(resources.files(__package__) / "glyphs.npz"), allow_pickle=False) as packed:
        return {name: packed[name] for name in packed.files}


def nearest_size(size: float, sizes: tuple[int, ...] = SIZES) -> int:
    """The size of the atlas next to one."""
    return min(sizes, key=lambda known: abs(known - size))


@lru_cache(maxsize=20000)
def text_width(font: Font, text: str) -> int:
    """Width of one line in pixels."""
    return face(font).width(text)


@lru_cache(maxsize=20000)
def shorten(font: Font, text: str, width: int) -> str:
    """Shorten a line to what fits, with an ellipsis where it does not."""
    if text_width(font, text) <= width:
        return text
    letters = face(font)
    left = width - letters.width("…")
    for count, character in enumerate(text):
        left -= letters.advances[character]
        if left < 0:
            return text[:count].rstrip() + "…"
    return text
