"""Trees and units of any shape: as the recursion made them, and with work that grows as the tokens do."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import numpy as np
import pytest
from builders import make_sample, make_trajectory, no_pixels
from hypothesis import given, settings
from hypothesis import strategies as st
from recursive_packing import grow as grow_before
from recursive_packing import units_of

from vlrl.algorithm.credit import group_with_advantages
from vlrl.ledger import Ledger
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import Tree, pack
from vlrl.packing.prefix_tree import Branch, Keys, TreeNode, grow, preorder
from vlrl.types import Group, Media

BEYOND_RECURSION = 1200


def medium(mark: int) -> Media:
    return Media("image", str(mark), np.zeros((1, 28, 28 * (1 + mark), 3), np.uint8), (28, 28), (1, 2, 2), 1)


def branches_of(rows: Sequence[Sequence[int]]) -> list[Branch]:
    """Tokens to branches; every token above 2 shows an image of that mark. The last one is trained."""
    keys, found = Keys(), []
    for row in rows:
        ids = np.asarray([*row, 0], np.int64)
        starts = tuple(int(i) for i in np.flatnonzero(ids > 2))
        trained = np.arange(len(ids)) == len(ids) - 1
        ledger = Ledger(
            ids, np.tile(np.arange(len(ids)), (3, 1)), trained, np.zeros(len(ids), np.float32), (), (),
            tuple(medium(int(ids[start])) for start in starts), starts,
        )  # fmt: skip
        found.append(
            Branch("s", ledger, np.zeros(len(ids), np.float32), trained, 1.0, keys.of(ledger, trained))
        )
    return found


def described(root: TreeNode) -> list[Any]:
    return [
        (id(n.branch), n.start, n.end, parent, [id(b) for b in n.ending], list(n.children), n.media)
        for n, parent in preorder(root)
    ]


ROWS = st.lists(st.lists(st.integers(1, 4), max_size=9), min_size=1, max_size=14)
NESTED = st.lists(st.integers(0, 20), min_size=1, max_size=12).map(
    lambda ends: [([1, 2, 3] * 7)[:e] for e in ends]
)


@settings(deadline=None, max_examples=300)
@given(ROWS | NESTED, st.integers(1, 60))
def test_trees_and_units_are_those_that_recursion_made(rows: list[list[int]], max_tokens: int) -> None:
    branches = branches_of(rows)
    assert described(grow(branches)) == described(grow_before(branches))
    assert Tree(branches).units(max_tokens) == units_of(grow_before(branches), max_tokens)


def nested(count: int, step: int = 3) -> Group:
    """Ledgers of which each begins with the one before it, as a long episode's may."""
    tokens = np.random.default_rng(0).integers(0, 100, count * step).tolist()
    sample = make_sample([1, 2])
    members = [make_trajectory(sample, tokens[: (i + 1) * step], index=i) for i in range(count)]
    return group_with_advantages(members, np.linspace(-1, 1, count).tolist())


def packed(group: Group, max_tokens: int = 10**6, **options: Any) -> Any:
    return pack(
        [group],
        no_pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=max_tokens,
            aggregation="token",
            max_completion_tokens=8,
            keep_zero_advantage=True,
            **options,
        ),
    )


def test_prefixes_nested_deeper_than_python_recurses_share_all_of_their_tokens() -> None:
    assert sys.getrecursionlimit() < BEYOND_RECURSION
    [[batch]] = packed(nested(BEYOND_RECURSION, 1))
    assert len(batch.input_ids) == 2 + BEYOND_RECURSION - 1
    assert len(batch.target_ids) == BEYOND_RECURSION * (BEYOND_RECURSION + 1) // 2


def num_events(work: Callable[[], object]) -> int:
    """Lines of Python that run, which no clock and no other process changes."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("max_tokens", [10**6, 450])
@pytest.mark.parametrize("num_ranks", [1, 2])
def test_twice_the_nested_prefixes_are_twice_the_work(max_tokens: int, num_ranks: int) -> None:
    """The ratio holds in one unit, and where none of the longer ones fits with another."""
    few, many = (branches_of([[1, 2] * n for n in range(1, count + 1)]) for count in (100, 200))

    def work(branches: list[Branch]) -> int:
        return num_events(lambda: Tree(branches).units(max_tokens))

    assert work(many) < 2.3 * work(few)
    groups = [nested(count, 2) for count in (100, 200)]
    small, large = (num_events(lambda g=g: packed(g, max_tokens)) for g in groups)
    assert large < 2.5 * small
