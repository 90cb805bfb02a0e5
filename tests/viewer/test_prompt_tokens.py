"""Where a medium's tokens stand in the expanded prompt, told from its two forms alone."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vlrl.types import Media, Prompt
from vlrl.viewer.prompt_tokens import context_spans, media_spans

START, END, PAD = 1, 2, 3
TEXT = st.lists(st.integers(10, 14), max_size=5)


class Spells:
    """The part of a processor that spans need."""

    banned_token_ids = (START, END, PAD)
    stop_token_ids = (9,)

    def token_texts(self, token_ids: np.ndarray) -> list[str]:
        return [f"<{i}>" for i in token_ids.tolist()]


def medium(num_tokens: int) -> Media:
    return Media("image", "", np.zeros((1, 2, 2, 3), np.uint8), (2, 2), (1, 1, 1), num_tokens)


@given(st.lists(st.tuples(TEXT, st.integers(1, 9)), max_size=5), TEXT)
def test_every_medium_is_found(parts: list[tuple[list[int], int]], tail: list[int]) -> None:
    engine: list[int] = []
    expanded: list[int] = []
    wanted = []
    for text, count in parts:
        engine += [*text, START, PAD, END]
        expanded += [*text, START]
        wanted.append((len(expanded), len(expanded) + count))
        expanded += [*[PAD] * count, END]
    engine, expanded = [*engine, *tail], [*expanded, *tail]
    ids = np.asarray(expanded, np.int64)
    prompt = Prompt(ids, np.asarray(engine, np.int64), np.zeros((3, len(ids)), np.int64), len(ids))
    media = [medium(count) for _, count in parts]
    found = media_spans(prompt, media, Spells())  # type: ignore[arg-type]
    if any(count > 1 for _, count in parts):
        assert found == wanted
    spans = context_spans(prompt, media, Spells())  # type: ignore[arg-type]
    folded = [int(s.text.rpartition("×")[2]) for s in spans if s.kind == "ctx pads"]
    assert folded == [count for _, count in parts if count > 1]
    assert len(spans) - len(folded) + sum(folded) == len(expanded)
