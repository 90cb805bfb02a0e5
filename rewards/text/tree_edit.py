"""The edit distance of two ordered trees, exact (Zhang and Shasha 1989, SIAM J. Comput. 18(6))."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class OrderedTree:
    """A tree by its nodes in postorder: children from left to right, then their parent.

    Attributes:
        nodes: the caller's own.
        leftmost: of each node the index of its leftmost leaf.
        keyroots: the root, and every node that has a sibling to its left, in ascending order.
    """

    nodes: Sequence[Any]
    leftmost: Sequence[int]
    keyroots: Sequence[int]

    def __len__(self) -> int:
        return len(self.nodes)

    @classmethod
    def of(cls, root: Any, children: Callable[[Any], Sequence[Any]]) -> OrderedTree:
        """A tree from its root; the depth is bounded by Python's own recursion limit, so bound it before."""
        nodes: list[Any] = []
        leftmost: list[int] = []

        def visit(node: Any) -> int:
            firsts = [visit(child) for child in children(node)]
            leftmost.append(firsts[0] if firsts else len(nodes))
            nodes.append(node)
            return leftmost[-1]

        visit(root)
        last = {left: index for index, left in enumerate(leftmost)}
        return cls(nodes, leftmost, sorted(last.values()))


def tree_edit_distance(a: OrderedTree, b: OrderedTree, cost: Callable[[int, int], float]) -> float:
    """The least cost of turning one tree into the other by inserting, deleting and changing nodes.

    Inserting or deleting a node costs 1, changing node i of `a` into node j of `b` cost(i, j). Time is
    Σ over pairs of keyroots of the product of their subtrees' sizes: for trees of bounded depth, such as
    tables, O(|a|·|b|).
    """
    between = [[0.0] * len(b) for _ in range(len(a))]
    for root_a in a.keyroots:
        is_leaf = a.leftmost[root_a] == root_a
        for root_b in b.keyroots:
            if is_leaf and b.leftmost[root_b] == root_b:  # most pairs of a table's nodes: two cells
                between[root_a][root_b] = min(2.0, cost(root_a, root_b))
            else:
                _fill(a, b, root_a, root_b, cost, between)
    return between[-1][-1]


def _fill(
    a: OrderedTree,
    b: OrderedTree,
    root_a: int,
    root_b: int,
    cost: Callable[[int, int], float],
    between: list[list[float]],
) -> None:
    """Write the distances of the subtrees that share their leftmost leaves with two keyroots' subtrees."""
    low_a, low_b = a.leftmost[root_a], b.leftmost[root_b]
    width = root_b - low_b + 2
    above = [float(j) for j in range(width)]
    forests = [above]
    for i in range(low_a, root_a + 1):
        row = [above[0] + 1.0]
        whole_a = a.leftmost[i] == low_a
        for j in range(low_b, root_b + 1):
            column = j - low_b + 1
            least = min(above[column], row[column - 1]) + 1.0
            if whole_a and b.leftmost[j] == low_b:
                least = min(least, above[column - 1] + cost(i, j))
                between[i][j] = least
            else:
                least = min(least, forests[a.leftmost[i] - low_a][b.leftmost[j] - low_b] + between[i][j])
            row.append(least)
        forests.append(row)
        above = row
