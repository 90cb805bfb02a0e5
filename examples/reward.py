"""A reward plug-in: one function in a file, used by `rewards=[{name: examples/reward.py:close_sum}]`."""

from __future__ import annotations

from vlrl.parsing.extract import extract_answer


def close_sum(completion: str, answer: str, digits: list[int]) -> dict[str, float]:
    """A point for the right sum, and half a point for naming both digits in the think part.

    `completion` is the model's text and `answer` the row's; `digits` is asked for by name and comes from
    the row's metadata. The returned parts are added up, and each is logged under its own name.
    """
    reading = "+".join(str(d) for d in digits)
    return {
        "sum": float(extract_answer(completion) == answer),
        "reading": 0.5 * completion.startswith(f"<think>{reading}</think>"),
    }
