"""Painters: functions from a size and a few values to pixels, cached by both.

A painter is called as painter(width, height, *values) and gives [height, width, 3] uint8, or with a fourth
channel of coverage where what lies behind shows through. Integer arithmetic only: the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache, cached

from vlrl.envs.gui.emu.drawing.glyphs import Font, face, shorten
from vlrl.envs.gui.emu.drawing.theme import Colour
from vlrl.types import ByteArray

Painter: TypeAlias = Callable[..., ByteArray]
COVERAGE_BYTES = 24_000_000
"""Of lines of letters, by size: a line is 1 kB on a small screen, and 100 kB across one of 3840 pixels."""
CACHED_CHARS = 120
"""Longest line of a text field whose letters are cached."""
FINE = 4
"""Samples a pixel in each direction, where an edge is not straight."""
SHARES = (np.arange(FINE**2 + 1) * 255 // FINE**2).astype(np.uint8)
"""Coverage by how many of a pixel's samples are inside."""


def fill(width: int, height: int, colour: Colour) -> ByteArray:
    """One colour: one row of it, seen `height` times, because rows are copied much faster than pixels."""
    row = np.array([colour], np.uint8).repeat(width, 0)
    return np.ndarray((height, width, 3), np.uint8, row, strides=(0, 3, 1))


def plate(
    width: int,
    height: int,
    behind: Colour,
    inside: Colour,
    border: Colour | None,
    radius: int,
    text: str = "",
    font: Font = Font(),  # noqa: B008 - a tuple
    colour: Colour = (0, 0, 0),
    align: str = "center",
    inset: int = 0,
) -> ByteArray:
    """A rounded rectangle with a line of text: buttons, labels, rows, tabs, menu items."""
    radius = max(0, min(radius, (min(width, height) - 1) // 2))
    if border is None and not radius and not text:
        return fill(width, height, inside)
    pixels = _paper(width, height, inside)
    if border is not None and width > 2 and height > 2:
        pixels[[0, -1]] = border
        pixels[:, [0, -1]] = border
    if radius:
        _round(pixels, radius, behind, inside, border)
    if text:
        side = 0 if border is None and not radius else max(1, radius)
        write(pixels, text, font, colour, align, inset, (inside, side))
    return pixels


@lru_cache(maxsize=1024)
def _mixtures(inside: Colour, colour: Colour) -> ByteArray:
    """[256, 3] a paper's colour covered by another, from not at all to wholly."""
    pixels = _paper(256, 1, inside)
    blend(pixels, np.arange(256, dtype=np.uint8)[None], colour)
    mixtures: ByteArray = pixels[0]
    return mixtures


def line(
    width: int,
    height: int,
    text: str,
    font: Font,
    colour: Colour,
    behind: Colour,
    selection: tuple[int, int, Colour, Colour] | None = None,
    caret: int | None = None,
    shift: int = 0,
) -> ByteArray:
    """A line of a text that is edited.

    Args:
        width: in pixels, and so on.
        height: of the line.
        text: what is written.
        font: of it.
        colour: of it.
        behind: of the paper.
        selection: (first pixel, last pixel, colour of the letters, colour behind them).
        caret: where the caret stands, in pixels.
        shift: pixels of the text that lie left of the image.
    """
    pixels = _paper(width, height, behind)
    cover = np.zeros((height, 0), np.uint8)
    if text:  # a line that is longer than most is seen in part, and would be large to cache
        cover = (coverage(font, text) if len(text) <= CACHED_CHARS else face(font).coverage(text))[:, shift:]
        cover = cover[:, :width]
    top = max(0, (height - cover.shape[0]) // 2)
    cover = cover[: height - top]
    down, across = cover.shape
    if selection is None:
        blend(pixels[top : top + down, :across], cover, colour)
    else:
        first, last = (min(max(0, end - shift), width) for end in selection[:2])
        pixels[:, first:last] = selection[3]
        colours = np.empty((across, 3), np.uint8)
        colours[:] = colour
        colours[first:last] = selection[2]
        blend(pixels[top : top + down, :across], cover, colours)
    if caret is not None:
        at = min(max(0, caret - shift), width - 1)
        pixels[:, at : at + 1] = colour
    return pixels


def dot(width: int, height: int, colour: Colour) -> ByteArray:
    """A filled circle on whatever lies behind; its square has an even side."""
    pixels = np.empty((height, width, 4), np.uint8)
    pixels[..., :3] = colour
    pixels[..., 3] = disc(width, width // 2)
    return pixels


def veil(width: int, height: int, colour: Colour) -> ByteArray:
    """A tint of a colour with a line around it, on whatever lies behind."""
    pixels = np.empty((height, width, 4), np.uint8)
    pixels[..., :3] = colour
    pixels[..., 3] = 220
    pixels[1:-1, 1:-1, 3] = 60
    return pixels


def dim(width: int, height: int) -> ByteArray:
    """A shade on whatever lies behind."""
    shade = np.array([[[16, 18, 24, 110]]], np.uint8)
    return np.broadcast_to(shade, (height, width, 4))


def caption(width: int, height: int, text: str, font: Font, colour: Colour, shade: Colour) -> ByteArray:
    """Centred text with a shade, on whatever lies behind."""
    cover = np.zeros((height, width), np.int32)
    letters = coverage(font, shorten(font, text, width - 2)).astype(np.int32)
    down, across = min(letters.shape[0], height - 1), min(letters.shape[1], width - 1)
    top, left = (height - down) // 2, (width - across) // 2
    shadow = cover.copy()
    for x, y in ((0, 0), (0, 1), (1, 0), (1, 1)):
        part = shadow[top + y : top + y + down, left + x : left + x + across]
        np.maximum(part, letters[: part.shape[0], : part.shape[1]], out=part)
    cover[top : top + down, left : left + across] = letters[:down, :across]
    pixels = np.empty((height, width, 4), np.uint8)
    share = cover[..., None]
    pixels[..., :3] = (np.array(shade) * (255 - share) + np.array(colour) * share + 127) // 255
    pixels[..., 3] = np.maximum(cover, shadow * 3 // 4)
    return pixels


@cached(LRUCache(COVERAGE_BYTES, lambda cover: cover.nbytes), lock=Lock(), info=True)
def coverage(font: Font, text: str) -> ByteArray:
    """[line height, text's width] uint8."""
    return face(font).coverage(text)


def write(
    pixels: ByteArray,
    text: str,
    font: Font,
    colour: Colour,
    align: str = "center",
    inset: int = 0,
    paper: tuple[Colour, int] | None = None,
) -> None:
    """Put one line of text on an image, in the middle of its height; what does not fit gets an ellipsis.

    Args:
        pixels: [height, width, 3], written to.
        text: what is written, and so on.
        font: of it.
        colour: of it.
        align: "left", "right" or "center".
        inset: pixels from that side.
        paper: (colour of the image, pixels at its sides where it may be another), if it is known: letters on
            one colour are looked up.
    """
    height, width = pixels.shape[:2]
    text = shorten(font, text, width - (0 if align == "center" else inset))
    if not text:
        return
    cover, left, top = _put(pixels, text, font, align, inset)
    right, bottom = left + cover.shape[1], top + cover.shape[0]
    if paper is not None:
        (inside, side), edge = paper, min(paper[1], 1)
        if side <= left and right <= width - side and edge <= top and bottom <= height - edge:
            pixels[top:bottom, left:right] = _mixtures(inside, colour).take(cover, 0)
            return
    blend(pixels[top:bottom, left:right], cover, colour)


def _put(pixels: ByteArray, text: str, font: Font, align: str, inset: int) -> tuple[ByteArray, int, int]:
    """Where a line's letters go: (coverage of those that fit, left, top)."""
    height, width = pixels.shape[:2]
    cover = coverage(font, text)
    top = (height - cover.shape[0]) // 2
    cover = cover[max(0, -top) :][:height, :width]
    across = cover.shape[1]
    left = {"left": inset, "right": width - across - inset, "center": (width - across) // 2}[align]
    left, top = max(0, left), max(0, top)
    return cover[: height - top, : max(0, width - left)], left, top


def blend(area: ByteArray, cover: ByteArray, colour: Colour | ByteArray) -> None:
    """Paint onto an area as far as it is covered.

    Args:
        area: [height, width, 3], written to.
        cover: [height, width]; 255 covers wholly.
        colour: one, or [width, 3] or [height, width, 3] of them.
    """
    height, width = cover.shape
    # Rows of numbers rather than of colours, as an inner loop of three numbers takes three times as long; 16
    # bits are enough for 255 * 255 + 127.
    if isinstance(colour, np.ndarray):
        colours = colour.reshape(*colour.shape[:-2], -1).astype(np.uint16)
    else:
        colours = np.array([colour], np.uint16).repeat(width, 0).reshape(-1)
    share = cover.repeat(3, axis=1).astype(np.uint16)
    mixed = area.reshape(height, 3 * width) * (255 - share)
    share *= colours
    mixed += share
    mixed += 127
    mixed //= 255
    area[:] = mixed.reshape(height, width, 3)


def _paper(width: int, height: int, colour: Colour) -> ByteArray:
    pixels = np.empty((height, width, 3), np.uint8)
    pixels[:1] = colour
    pixels[1:] = pixels[:1]  # rows are copied much faster than colours
    return pixels


def _round(pixels: ByteArray, radius: int, behind: Colour, inside: Colour, border: Colour | None) -> None:
    corner = _corner(radius, behind, inside, border or inside)
    pixels[:radius, :radius] = corner
    pixels[:radius, -radius:] = corner[:, ::-1]
    pixels[-radius:, :radius] = corner[::-1]
    pixels[-radius:, -radius:] = corner[::-1, ::-1]


@lru_cache(maxsize=512)
def _corner(radius: int, behind: Colour, inside: Colour, border: Colour) -> ByteArray:
    """[radius, radius, 3]: the top left corner."""
    outer, inner = disc(2 * radius, radius)[:radius, :radius], disc(2 * radius, radius - 1)[:radius, :radius]
    pixels = np.empty((radius, radius, 3), np.uint8)
    pixels[:] = behind
    blend(pixels, outer, border)
    blend(pixels, inner, inside)
    return pixels


@lru_cache(maxsize=64)
def disc(side: int, radius: int) -> ByteArray:
    """[side, side] coverage of a disc in the middle, `radius` in pixels."""
    place = 2 * np.arange(side * FINE) + 1 - side * FINE  # in halves of a sample, from the middle
    inside = place[:, None] ** 2 + place[None, :] ** 2 <= (2 * FINE * radius) ** 2
    return covered(inside)


def covered(inside: npt.NDArray[np.bool_]) -> ByteArray:
    """[height, width] coverage of a shape that was sampled FINE times a pixel in each direction."""
    fours = np.ascontiguousarray(inside).view(np.uint32)  # four samples of a row in the bytes of one number
    rows = fours[0::FINE] + fours[1::FINE] + fours[2::FINE] + fours[3::FINE]
    cover: ByteArray = SHARES[rows * np.uint32(0x01010101) >> np.uint32(24)]  # its first byte is their sum
    return cover
