"""An episode as a film strip: what was seen, what was done about it, and what that earned, turn by turn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlrl.viewer.charts import short
from vlrl.viewer.pictures import Picture, inline_thumbnails

MAX_FRAMES = 48
"""Turns of an episode shown; of a longer one only its two ends are."""

DEED = re.compile(r"<(action|answer|tool_call)>((?:(?!<\1>).)*?)</\1>\s*(?:<\|im_end\|>)?\s*$", re.DOTALL)
"""The last thing a model does in a turn, as all but a stranger's environment reads it."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One turn.

    Attributes:
        number: from 1.
        pictures: seen since the last action.
        thought: what was written before the action.
        deed: the action; all of the text, if no part of it is marked as one.
        reward: of this turn; empty for 0.
        tone: "good", "bad" or "".
        advantage: what the turn was trained towards; empty if it was not.
        marks: what is out of the ordinary about it, as (words, what hovering tells).
        left_out: turns left out of the page before this one.
    """

    number: int
    pictures: Sequence[Picture]
    thought: str
    deed: str
    reward: str
    tone: str
    advantage: str
    marks: Sequence[tuple[str, str]]
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Strip:
    """An episode: its frames, and its end in words."""

    frames: Sequence[Frame]
    facts: Sequence[tuple[str, str]]
    solved: bool | None


def build_strip(run_dir: Path, record: Mapping[str, Any]) -> Strip:
    """The film strip of a rollout record.

    Args:
        run_dir: folder that media paths are relative to.
        record: from `vlrl.records.rollout_records`.
    """
    turns, info = record.get("turns", []), record.get("info", {})
    shown = list(range(len(turns)))
    if len(turns) > MAX_FRAMES:
        half = MAX_FRAMES // 2
        shown = [*shown[:half], *shown[-half:]]
    frames, last, before = [], -1, None
    for index in shown:
        turn = turns[index]
        is_new_ledger = before is not None and turn["ledger"] != before["ledger"]
        frames.append(_frame(run_dir, record, index, is_new_ledger, index - last - 1))
        last, before = index, turn
    facts = [("turns", str(len(turns))), ("return", short(record.get("episode_return")))]
    facts += [(name, short(value)) for name, value in info.items() if name != "success"]
    success = info.get("success")
    return Strip(frames, facts, None if success is None else bool(success))


def split_deed(text: str) -> tuple[str, str]:
    """(what comes before the action, the action); all of the text is the action, if none is marked."""
    match = DEED.search(text)
    return (text[: match.start()].strip(), match[2].strip()) if match else ("", text.strip())


def _frame(run_dir: Path, record: Mapping[str, Any], index: int, is_new_ledger: bool, left_out: int) -> Frame:
    turn = record["turns"][index]
    thought, deed = split_deed(turn["text"])
    reward, advantage = turn.get("reward"), turn.get("advantage")
    marks = []
    if turn.get("invalid"):
        marks.append(("invalid", "the environment could not read it as an action"))
    if not turn.get("finished", True):
        marks.append(("cut off", "longer than rollout.max_tokens"))
    if is_new_ledger:
        marks.append(("context anew", "from here on another ledger: what was shown before was rewritten"))
    return Frame(
        number=index + 1,
        pictures=[
            picture
            for number in _new_media(record, index, is_new_ledger)
            for picture in inline_thumbnails(run_dir, record["media"][number])
        ],
        thought=thought,
        deed=deed,
        reward=f"{reward:+.3g}" if reward else "",
        tone="" if not reward else "good" if reward > 0 else "bad",
        advantage=f"{advantage:+.2f}" if advantage else "",
        marks=marks,
        left_out=left_out,
    )


def _new_media(record: Mapping[str, Any], index: int, is_new_ledger: bool) -> list[int]:
    """Media of a turn; where the context was written anew, those that were not seen in the turn before."""
    media: list[int] = record["turns"][index]["media"]
    if not is_new_ledger:
        return media
    seen = {number for turn in record["turns"][:index] for number in turn["media"]}
    return [number for number in media if number not in seen] or media[-1:]
