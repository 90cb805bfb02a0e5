"""MiniCPM-V counts a prompt's images: each one's number is a part of its tokens."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import family_config, make_generation, observe, random_image

from vlrl.ledger import Ledger
from vlrl.processors.auto import open_processor
from vlrl.rollout.session import Session

NUM_TURNS = 12


@pytest.fixture(scope="module")
def processor(tiny_family: Callable[[str], Path]) -> Any:
    return open_processor(family_config(tiny_family("minicpmv4_6")))


def play(processor: Any, **policy: Any) -> tuple[Ledger, ...]:
    """An episode that shows an image a turn."""
    first = {"role": "user", "content": [{"type": "image", "image": random_image(64, 64, 0)}]}
    session = Session(processor.sample({"id": "r", "messages": [first]}), 0)
    for turn in range(1, NUM_TURNS):
        processor.act(session, make_generation(processor.encode_target("on")))
        observe(processor, session, "next", [random_image(64, 64, turn)], **policy)
    processor.act(session, make_generation(processor.encode_target("done")))
    return tuple(session.trajectory("done", "ok", 0.0).ledgers)


def numbers(processor: Any, ledger: Ledger) -> list[int]:
    """The numbers of a ledger's images, in their order."""
    return [int(n) for n in re.findall(r"<image_id>(\d+)</image_id>", processor.decode(ledger.token_ids))]


def test_a_ledger_counts_on_from_turn_to_turn(processor: Any) -> None:
    """Numbers of two digits are more tokens; the image's text is otherwise the same."""
    [ledger] = play(processor)
    assert numbers(processor, ledger) == list(range(NUM_TURNS))
    pad = processor.banned_token_ids[0]
    ends = (*ledger.media_starts[1:], len(ledger.token_ids))
    spans = zip(ledger.media_starts, ends, strict=True)
    assert len({int((ledger.token_ids[start:end] == pad).sum()) for start, end in spans}) == 1


def test_a_window_counts_from_0_again(processor: Any) -> None:
    """What is shown is numbered as vLLM numbers what it is given."""
    ledgers = play(processor, policy="last_images", num_images=2)
    assert len(ledgers) == NUM_TURNS - 1
    assert all(numbers(processor, ledger) == [0, 1] for ledger in ledgers[1:])
