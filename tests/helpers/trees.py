"""Random forests of tokens, in the form that attention takes."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

Tree = tuple[int, list[Any]]
TREES = st.recursive(
    st.tuples(st.integers(1, 25), st.just([])),
    lambda children: st.tuples(st.integers(1, 25), st.lists(children, max_size=3)),
    max_leaves=8,
)
Forest = list[Tree]
FORESTS = st.lists(TREES, min_size=1, max_size=4)


def seen_until(forest: Forest) -> Tensor:
    """Nodes of so many tokens in preorder."""
    found: list[int] = []

    def write(tree: Tree) -> None:
        size, children = tree
        start = len(found)
        found.extend([0] * size)
        for child in children:
            write(child)
        found[start : start + size] = [len(found)] * size

    for tree in forest:
        write(tree)
    return torch.tensor(found, dtype=torch.int32)
