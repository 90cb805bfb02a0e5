"""TEDS by hand, its tree edit distance against the definition, and nothing for what is not a table."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from images import think

from vlrl.errors import ConfigError
from vlrl.registry import resolve
from vlrl.rewards.text.table import TableNode, read_table, similarity, teds
from vlrl.rewards.text.tree_edit import OrderedTree, tree_edit_distance

TABLE = "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td><td>dd</td></tr></table>"  # 7 nodes below the root


def score(said: str, answer: Any = TABLE, **options: Any) -> float:
    return teds(think(said), answer, **options)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (TABLE, 1),
        (f"```html\n{TABLE}\n```", 1),
        (f"<html><body>{TABLE}</body></html>", 1),
        (f"<table><tbody>{TABLE[7:-8].replace('<td>a</td>', '<th> a </th>')}</tbody></table>", 1),
        (TABLE.replace("dd", "d<b>d</b>"), 1),
        ("<TABLE border=1><tr><td>a<td>b<tr><td>c<td>dd</table>", 1),
        (TABLE.replace("dd", "dx"), 1 - 0.5 / 7),
        (TABLE.replace("<td>dd</td>", ""), 1 - 1 / 7),
        (TABLE.replace("<td>b</td>", '<td colspan="2">b</td>'), 1 - 1 / 7),
        (TABLE.replace("</table>", "<tr><td>e</td></tr></table>"), 1 - 2 / 9),
        ("<table></table>", 0),
        ("<table><tr></tr></table>", 2 / 7),
        (TABLE * 2, 0),
        (f"Here it is: {TABLE}", 0),
        (TABLE.replace(">a<", f">{TABLE}<"), 0),
    ],
)  # fmt: skip
def test_values_by_hand(said: str, value: float) -> None:
    assert score(said) == pytest.approx(value)
    assert teds(said, TABLE, part="whole") == pytest.approx(value)


def test_options() -> None:
    wrong = "<table><tr><td>w</td><td>x</td></tr><tr><td>y</td><td>z</td></tr></table>"
    assert score(wrong) == pytest.approx(1 - 4 / 7)
    assert score(wrong, structure_only=True) == 1
    assert score(wrong, threshold=0.5) == 0
    assert score(wrong, [TABLE, wrong]) == 1
    with pytest.raises(ConfigError, match="threshold"):
        score(wrong, threshold=1.5)
    assert resolve("rewards", "teds") is teds


def by_definition(a: TableNode, b: TableNode) -> float:
    """The distance of two forests by the recursion that defines it, right ends first."""

    def frozen(node: TableNode) -> tuple[Any, ...]:
        return node.text, tuple(map(frozen, node.children))

    def size(forest: Sequence[Any]) -> int:
        return sum(1 + size(children) for _, children in forest)

    @functools.cache
    def distance(left: tuple[Any, ...], right: tuple[Any, ...]) -> float:
        if not left or not right:
            return size(left or right)
        (text, inner), (other, its) = left[-1], right[-1]
        return min(
            distance(left[:-1] + inner, right) + 1,
            distance(left, right[:-1] + its) + 1,
            distance(left[:-1], right[:-1]) + distance(inner, its) + (text != other),
        )

    return distance((frozen(a),), (frozen(b),))


def test_the_distance_is_the_one_defined() -> None:
    rng = np.random.default_rng(0)

    def random_tree(depth: int) -> TableNode:
        children = [random_tree(depth - 1) for _ in range(rng.integers(0, 4))] if depth else []
        return TableNode("td", text="ab"[rng.integers(2)], children=children)

    for _ in range(150):
        a, b = random_tree(2), random_tree(3)
        left, right = (OrderedTree.of(root, lambda node: node.children) for root in (a, b))
        cost = lambda i, j: float(left.nodes[i].text != right.nodes[j].text)  # noqa: B023, E731
        assert tree_edit_distance(left, right, cost) == by_definition(a, b)


def test_it_is_symmetric_and_one_on_itself() -> None:
    other = read_table(
        "<table><thead><tr><td>a</td></tr></thead><tr><td rowspan=2>c</td><td>x</td></tr></table>"
    )
    table = read_table(TABLE)
    assert similarity(table, other) == similarity(other, table) < 1
    assert similarity(table, table) == 1


HOSTILE = [
    "", "a b c dd", "<table>", "</table>", "<table", "<", "<tr><td>a</td></tr>", "<td>a</td>",
    "<table>a</table>", "<table><td>a</td></table>", "<table><tr>a</tr></table>",
    "<div><table></table></div>",
    "<table><img src='file:///etc/passwd'></table>", "<!ENTITY x 'y'><table></table>", "&#1114112;" * 100,
    "<table><tr>" + "<td>" * 4000, "<table>" * 2000, "<table><tr>" + "<td>" * 1500 + "</table>", "<" * 19_000,
    "<table><caption>a</caption></table>", "| a | b |\n|---|---|\n| c | dd |", "<table></table>x",
    "<table><!--" * 1000, "<a " * 5000, "\x00" * 100, "[[\"a\", \"b\"]]",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_table_scores_nothing(text: str) -> None:
    assert score(text) == 0
    assert teds(text, TABLE, part="whole") == 0


def test_scripts_and_spans_are_inert() -> None:
    assert score(TABLE.replace("dd", "dd<script>alert(1)</script>")) == 1
    huge = TABLE.replace("<td>a", "<td colspan=99999999999999999999 rowspan=-1>a")
    assert score(huge) == 1


def test_the_right_table_many_times_or_with_every_answer_earns_little() -> None:
    rows = "".join(f"<tr><td>{i}</td><td>{i}</td></tr>" for i in range(100))
    assert score(f"<table>{rows}</table>") < 0.05
    assert score(f"<table>{TABLE[7:-8] * 50}</table>") < 0.05


@pytest.mark.parametrize("answer", [None, "", "cat", "<table></table>", [], 7])
def test_a_sample_without_a_table_is_a_failure_not_a_zero(answer: Any) -> None:
    for text in ("", think(TABLE)):
        with pytest.raises(ValueError, match="sample"):
            teds(text, answer)
