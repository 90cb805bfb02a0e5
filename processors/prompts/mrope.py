"""Multimodal rotary positions of the Qwen families (Qwen2-VL, arXiv 2409.12191 §2.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vlrl.types import IntArray

Grid = tuple[int, int, int]


def text_positions(num_tokens: int, start: int) -> IntArray:
    """Positions of text: all three rows advance by one a token; [3, num_tokens] int64."""
    return np.tile(np.arange(start, start + num_tokens, dtype=np.int64), (3, 1))


def mrope_positions(
    is_pad: npt.NDArray[np.bool_], grids: Sequence[Grid], time_steps: Sequence[float], start: int
) -> tuple[IntArray, int]:
    """Positions of a prompt with media.

    A run of pads is one grid: it counts time, height and width from where the text left off, and what
    follows goes on after the largest position in it. (So do the published models and vLLM; transformers 5.19
    goes on after the larger of height and width, which is the same unless a video is longer than that.)

    Args:
        is_pad: [num_tokens] bool, True at media placeholders.
        grids: (time, height, width) in tokens of each run of pads, in order.
        time_steps: of each run, by how many positions one step in time advances; 0 keeps time still.
        start: position of the first token.

    Returns:
        ([3, num_tokens] int64, position of the token that follows).

    Raises:
        ValueError: if the runs are not the grids.
    """
    edges = np.flatnonzero(np.diff(np.concatenate([[False], is_pad, [False]]).astype(np.int8)))
    runs = edges.reshape(-1, 2)
    if [int(end - begin) for begin, end in runs] != [t * h * w for t, h, w in grids]:
        raise ValueError(f"runs of pads {runs.tolist()} do not fit the grids {list(grids)}")
    pieces, cursor = [], 0
    for (begin, end), (time, height, width), step in zip(runs, grids, time_steps, strict=True):
        pieces.append(text_positions(int(begin) - cursor, start))
        start += int(begin) - cursor
        grid = np.stack(np.meshgrid(np.arange(time), np.arange(height), np.arange(width), indexing="ij"))
        grid[0] = (grid[0] * step).astype(np.int64)
        pieces.append(grid.reshape(3, -1) + start)
        start += int(grid.max()) + 1
        cursor = int(end)
    pieces.append(text_positions(len(is_pad) - cursor, start))
    return np.concatenate(pieces, axis=1).astype(np.int64), start + len(is_pad) - cursor
