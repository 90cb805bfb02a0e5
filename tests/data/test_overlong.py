"""Law 4 for prompts: whole turns with their media go, or the row does; never a part of one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vlrl.data.overlong import fit_row
from vlrl.errors import DataError
from vlrl.types import Row


def num_tokens(row: Row) -> int:
    """A fake processor: a text is as many tokens as it has characters, an image is ten."""
    total = 0
    for message in row["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        total += sum(len(p["text"]) if p["type"] == "text" else 10 for p in parts)
    return total


def turn(role: str, text: str, images: int = 0) -> dict[str, Any]:
    image = {"type": "image", "image": "a.png"}
    return {"role": role, "content": [*[image] * images, {"type": "text", "text": text}]}


def conversation(*turns: dict[str, Any]) -> dict[str, Any]:
    return {"id": "rows.jsonl:3", "messages": list(turns)}


LONG = conversation(
    turn("system", "ss"),
    turn("user", "aaa", images=2),
    turn("assistant", "bb"),
    turn("user", "cccc", images=1),
    turn("assistant", "d"),
    turn("user", "eeeee"),
)


def test_what_fits_is_left_alone() -> None:
    for policy in ("drop", "trim", "error"):
        fitted = fit_row(LONG, num_tokens, 47, policy)  # type: ignore[arg-type]
        assert (fitted.row is LONG, fitted.num_dropped_turns) == (True, 0)


def test_drop() -> None:
    fitted = fit_row(LONG, num_tokens, 46, "drop")
    assert fitted.row is None
    assert "'rows.jsonl:3' needs 47 prompt tokens, 46 fit" in fitted.reason


def test_error_names_the_sample_and_the_remedies() -> None:
    with pytest.raises(
        DataError, match=r"'rows\.jsonl:3' needs 47 .*max_model_len.*overlong to drop or trim"
    ):
        fit_row(LONG, num_tokens, 46, "error")


@pytest.mark.parametrize(
    ("room", "left", "dropped"), [(46, "s.cde", 2), (22, "s.cde", 2), (21, "s.e", 4), (7, "s.e", 4)]
)
def test_trim_takes_the_oldest_turns_whole(room: int, left: str, dropped: int) -> None:
    fitted = fit_row(LONG, num_tokens, room, "trim")
    assert fitted.row is not None
    texts = [message["content"][-1]["text"][0] for message in fitted.row["messages"]]
    assert "".join(texts) == left.replace(".", "")
    assert fitted.num_dropped_turns == dropped
    assert fitted.row["id"] == LONG["id"]
    assert len(LONG["messages"]) == 6


def test_trim_never_takes_the_last_user_turn() -> None:
    fitted = fit_row(LONG, num_tokens, 6, "trim")
    assert (fitted.row, fitted.num_dropped_turns) == (None, 0)
    assert "needs 47" in fitted.reason


@given(
    lengths=st.lists(
        st.tuples(st.integers(1, 9), st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=6
    ),
    system=st.integers(0, 9),
    room=st.integers(1, 120),
)
def test_trimmed_conversations_are_whole_suffixes(
    lengths: list[tuple[int, int, int]], system: int, room: int
) -> None:
    """What is left is the system message and a run of the last turns, unchanged, as long as fits."""
    turns = [turn("system", "s" * system)] if system else []
    for index, (asked, images, answered) in enumerate(lengths):
        turns.append(turn("user", "q" * asked, images))
        if index < len(lengths) - 1:
            turns.append(turn("assistant", "a" * answered))
    row = conversation(*turns)
    fitted = fit_row(row, num_tokens, room, "trim")
    head = turns[: bool(system)]
    starts = [index for index, message in enumerate(turns) if message["role"] == "user"]
    fitting = [
        [*head, *turns[start:]] for start in starts if num_tokens(conversation(*head, *turns[start:])) <= room
    ]
    if not fitting:
        assert fitted.row is None
    else:
        assert fitted.row is not None
        assert fitted.row["messages"] == fitting[0]
        assert fitted.num_dropped_turns == len(turns) - len(fitting[0])
