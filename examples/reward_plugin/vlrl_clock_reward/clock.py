"""How near a time is that was read from a clock's face."""

from __future__ import annotations

import re
from typing import Any

from vlrl.parsing.extract import extract_answer
from vlrl.rewards import Scored, reward

MINUTES = 12 * 60
"""Of a clock's face: 3:00 and 15:00 look the same."""

_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")


@reward(range=(0.0, 1.0))
def clock_time(completion: str, answer: Any, *, tolerance_min: float = 30.0) -> Scored:
    """max(0, 1 − d / tolerance_min), with d the minutes between the two times on the clock's face.

    Range [0, 1]; d is at most 360. What is not one time in the form <think>…</think><answer>H:MM</answer>
    scores 0: an empty answer, several times, a time with words around it. The minutes are logged as a note,
    which counts for nothing.

    Args:
        completion: what the model wrote.
        answer: the true time, "3:05" or "15:05".
        tolerance_min: a time so many minutes off scores 0.

    Raises:
        ValueError: if the sample's answer is not a time, or tolerance_min is not above 0.
    """
    if not tolerance_min > 0:
        raise ValueError(f"tolerance_min={tolerance_min} must be above 0")
    true = _minutes(answer) if isinstance(answer, str) else None
    if true is None:
        raise ValueError(f"the sample's answer is {answer!r:.60}; give a time such as 3:05")
    said = _minutes(extract_answer(completion) or "")
    if said is None:
        return Scored(0.0)
    apart = abs(said - true) % MINUTES
    apart = min(apart, MINUTES - apart)
    return Scored(max(0.0, 1.0 - apart / tolerance_min), {"minutes_off": float(apart)})


def _minutes(text: str) -> int | None:
    """Minutes since twelve o'clock of a text that is one time and nothing else."""
    match = _TIME.fullmatch(text.strip())
    return (int(match[1]) * 60 + int(match[2])) % MINUTES if match else None
