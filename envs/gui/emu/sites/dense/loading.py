"""How long pages of the dense web take, in virtual time: to answer, to show text, to show images."""

from __future__ import annotations

from typing import NamedTuple

from vlrl.seeds import derive_seed

SKELETON, TEXT, READY = 0, 1, 2
"""Stages of a page: grey bars; its text, with images and advertisements still missing; all of it."""
ANSWER_MS, TEXT_MS, IMAGES_MS, ROWS_MS = (150, 1600), (100, 1900), (300, 2200), (500, 2400)
"""(least, most) until a page answers, until its text is there, then its images; until more rows are."""
NEWSLETTER_MS = (3000, 9000)
"""Until a page puts its newsletter in front."""
FIRST_ROWS, MORE_ROWS = 8, 8
"""Parts of a long list that a page begins with, and that each scroll to its end brings."""


class Loaded(NamedTuple):
    """How much of a page is there.

    Attributes:
        stage: of the page.
        rows: how many parts of a long list.
        is_asked: whether the page has put its newsletter in front.
    """

    stage: int
    rows: int
    is_asked: bool


def delay_ms(kind: str, limits: tuple[int, int], seed: int, address: str) -> int:
    """Virtual milliseconds that something of a page takes; always the same in an episode."""
    least, most = limits
    return least + derive_seed("page", kind, address, seed) % (most - least + 1)


def stage_after(elapsed_ms: int, seed: int, address: str) -> int:
    """The stage of a page so long after it was asked for."""
    text = delay_ms("answer", ANSWER_MS, seed, address) + delay_ms("text", TEXT_MS, seed, address)
    if elapsed_ms < text:
        return SKELETON
    return TEXT if elapsed_ms < text + delay_ms("images", IMAGES_MS, seed, address) else READY


def has_answered(elapsed_ms: int, seed: int, address: str) -> bool:
    """Whether a page that was asked for so long ago takes the place of the one before."""
    return elapsed_ms >= delay_ms("answer", ANSWER_MS, seed, address)
