"""An episode as a film strip: what was seen, what was done about it, and what that earned, turn by turn."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlrl.viewer.charts import short
from vlrl.viewer.gestures import Gesture, read_gesture
from vlrl.viewer.images import Encode, InlineImage, inline_images

MAX_FRAMES = 48
"""Turns of an episode shown; of a longer one only its two ends are."""

TOLD = ("success", "invalid", "settled", "num_steps")
"""Numbers of an episode's last info that the strip shows in another form."""

DEED = re.compile(r"<(action|answer|tool_call)>((?:(?!<\1>).)*?)</\1>\s*(?:<\|im_end\|>)?\s*$", re.DOTALL)
"""The last thing a model does in a turn, as all but a stranger's environment reads it."""


@dataclass(frozen=True, slots=True)
class StripFrame:
    """One turn.

    Attributes:
        number: from 1.
        images: seen since the last action.
        thought: what was written before the action.
        deed: the action; all of the text, if no part of it is marked as one.
        reward: of this turn; empty for 0.
        tone: "good", "bad" or "".
        advantage: what the turn was trained towards; empty if it was not.
        marks: what is out of the ordinary about it, as (words, tooltip).
        left_out: turns left out of the page before this one.
        gesture: what the action did to the last of the images, if the environment reports it.
    """

    number: int
    images: Sequence[InlineImage]
    thought: str
    deed: str
    reward: str
    tone: str
    advantage: str
    marks: Sequence[tuple[str, str]]
    left_out: int = 0
    gesture: Gesture | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """An episode.

    Attributes:
        frames: its turns.
        end: what its last action led to, if that was recorded.
        facts: about it, as (name, value).
        solved: None if the environment does not say.
        num_turns: shown or left out.
    """

    frames: Sequence[StripFrame]
    end: Sequence[InlineImage]
    facts: Sequence[tuple[str, str]]
    solved: bool | None
    num_turns: int

    @property
    def is_screen(self) -> bool:
        """True where actions are done to a screen: its images are drawn larger."""
        return any(frame.gesture for frame in self.frames)


def is_strip(record: Mapping[str, Any]) -> bool:
    """True of an episode that is best seen as a strip: several turns, or a deed on a screen."""
    turns = record.get("turns", [])
    return len(turns) > 1 or any(read_gesture(turn.get("info", {})) for turn in turns)


def num_images(record: Mapping[str, Any]) -> int:
    """Images in its strip, about."""
    turns = record.get("turns", [])
    return sum(max(1, len(turns[index]["media"])) for index in _shown(len(turns))) + 1


def build_strip(run_dir: Path, record: Mapping[str, Any], encode: Encode) -> Strip:
    """The film strip of a rollout record.

    Args:
        run_dir: folder that media paths are relative to.
        record: from `vlrl.tracking.rollouts.records.rollout_records`.
        encode: makes the images.
    """
    turns, info = record.get("turns", []), record.get("info", {})

    def images(numbers: Sequence[int]) -> list[InlineImage]:
        return [p for number in numbers for p in inline_images(run_dir, record["media"][number], encode)]

    frames, last, before = [], -1, None
    for index in _shown(len(turns)):
        turn = turns[index]
        is_new_ledger = before is not None and turn["ledger"] != before["ledger"]
        seen = images(new_media(record, index, is_new_ledger))
        frames.append(_frame(turn, index, seen, is_new_ledger, index - last - 1))
        last, before = index, turn
    end = images(record.get("end", {}).get("media", []))
    facts = [("turns", str(len(turns))), ("return", short(record.get("episode_return")))]
    facts += [(name, short(value)) for name, value in info.items() if name not in TOLD]
    success = info.get("success")
    return Strip(frames, end, facts, None if success is None else bool(success), len(turns))


def split_deed(text: str) -> tuple[str, str]:
    """(what comes before the action, the action); all of the text is the action, if none is marked."""
    match = DEED.search(text)
    return (text[: match.start()].strip(), match[2].strip()) if match else ("", text.strip())


def _shown(count: int) -> list[int]:
    """Turns of an episode that are drawn: all, or of a long one its two ends."""
    half = MAX_FRAMES // 2
    return list(range(count)) if count <= MAX_FRAMES else [*range(half), *range(count - half, count)]


def _frame(
    turn: Mapping[str, Any], index: int, images: Sequence[InlineImage], is_new_ledger: bool, left_out: int
) -> StripFrame:
    thought, deed = split_deed(turn["text"])
    reward, advantage = turn.get("reward"), turn.get("advantage")
    marks = []
    if turn.get("invalid"):
        marks.append(("invalid", "the environment could not read it as an action"))
    if not turn.get("finished", True):
        marks.append(("cut off", "longer than rollout.max_tokens"))
    if turn.get("info", {}).get("settled") is False:
        marks.append(("unsettled", "the screen was still changing when the time to wait for it had run out"))
    if is_new_ledger:
        marks.append(("context again", "from here on another ledger: what was shown before was rewritten"))
    return StripFrame(
        number=index + 1,
        images=images,
        thought=thought,
        deed=deed,
        reward=f"{reward:+.3g}" if reward else "",
        tone="" if not reward else "good" if reward > 0 else "bad",
        advantage=f"{advantage:+.2f}" if advantage else "",
        marks=marks,
        left_out=left_out,
        gesture=read_gesture(turn.get("info", {})),
    )


def new_media(record: Mapping[str, Any], index: int, is_new_ledger: bool) -> list[int]:
    """Media of a turn; where the context was written again, those that were not seen in the turn before."""
    media: list[int] = record["turns"][index]["media"]
    if not is_new_ledger:
        return media
    seen = {number for turn in record["turns"][:index] for number in turn["media"]}
    return [number for number in media if number not in seen] or media[-1:]
