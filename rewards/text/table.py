"""TEDS, the similarity of two tables written in HTML: tree edit distance over the number of nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from rapidfuzz.distance import Levenshtein

from vlrl.errors import ConfigError
from vlrl.parsing.extract import Part, references, scored_text
from vlrl.parsing.strict_json import Unreadable, unfenced
from vlrl.rewards.text.tree_edit import OrderedTree, tree_edit_distance
from vlrl.scoring.author import reward

MAX_NODES = 600
"""Of one table below its root: time grows with the product of two tables' nodes."""

_GROUPS = ("thead", "tbody", "tfoot")
_CELLS = ("td", "th")
_AROUND = ("html", "body")
_WITHOUT_TEXT = ("col", "colgroup")
_BREAKS = ("br", "hr", "p", "div", "li")
_WORDLESS = ("script", "style")


@dataclass(slots=True)
class TableNode:
    """A table, a group of rows, a row or a cell.

    Attributes:
        tag: table, thead, tbody, tr or td; th is td, tfoot and rows outside of any group are of a tbody.
        spans: (colspan, rowspan) of a cell.
        text: of a cell, white space as one space.
        children: in order.
    """

    tag: str
    spans: tuple[int, int] = (1, 1)
    text: str = ""
    children: list[TableNode] = field(default_factory=list)


@reward(range=(0.0, 1.0))
def teds(
    completion: str,
    answer: Any,
    *,
    structure_only: bool = False,
    threshold: float = 0.0,
    part: Part = "answer",
) -> float:
    """TEDS = 1 − d(a, b) / max(|a|, |b|), d the tree edit distance of two HTML tables; 0 below a threshold.

    |·| counts the nodes below the root. Inserting or deleting a node costs 1; changing one into another costs
    1 if their tags, column spans or row spans differ, and for two cells that agree in these the normalised
    Levenshtein distance of their texts. Range [0, 1]. Source: Zhong et al. 2020 (arXiv 1911.10683, section
    4.1). Of several references the best counts.

    Unlike the authors' code, th counts as td, rows outside of any group belong to a tbody, and tags inside a
    cell (<b>, <sup>) are not nodes: only a cell's text counts. Text around the table, a second table, a table
    in a table, no table, and more than MAX_NODES nodes score 0. A table of the right shape with wrong texts
    scores its rows' share: `threshold` says what is worth nothing.

    Args:
        completion: what the model wrote.
        answer: the table in HTML.
        structure_only: leave out the texts (TEDS-Struct).
        threshold: values below it score 0.
        part: what is compared; see `vlrl.parsing.extract`.

    Raises:
        ValueError: for a sample whose answer is not a table.
        ConfigError: unless 0 ≤ threshold ≤ 1.
    """
    if not 0 <= threshold <= 1:
        raise ConfigError(f"threshold={threshold} must lie from 0 to 1")
    targets = [_true_table(text) for text in references(answer)]
    text = scored_text(completion, part)
    try:
        said = read_table(text or "")
    except Unreadable:
        return 0.0
    best = max(similarity(said, target, structure_only=structure_only) for target in targets)
    return best if best >= threshold else 0.0


def similarity(a: TableNode, b: TableNode, *, structure_only: bool = False) -> float:
    """TEDS of two tables; 1 for two without any node."""
    first, second = (OrderedTree.of(table, lambda node: node.children) for table in (a, b))
    most = max(len(first), len(second)) - 1
    distance = tree_edit_distance(first, second, _costs(first.nodes, second.nodes, structure_only))
    return max(0.0, 1.0 - distance / most) if most else 1.0


def read_table(text: str) -> TableNode:
    """The table of a text that is nothing but one table in HTML.

    Raises:
        Unreadable: if the text is anything else, or the table has more than MAX_NODES nodes.
    """
    reader = _Reader()
    reader.feed(unfenced(text).removeprefix("html\n"))
    reader.close()
    if reader.table is None or reader.depth:
        raise Unreadable("not one closed <table>")
    return reader.table


def _true_table(text: str) -> TableNode:
    try:
        found = read_table(text)
    except Unreadable as error:
        raise ValueError(f"the sample's answer must hold an HTML table: {error}") from error
    if not found.children:
        raise ValueError("the sample's answer is a table without rows")
    return found


def _costs(
    first: Sequence[TableNode], second: Sequence[TableNode], structure_only: bool
) -> Callable[[int, int], float]:
    """The cost of changing node i of the first tree into node j of the second."""
    found: dict[tuple[str, str], float] = {}

    def cost(i: int, j: int) -> float:
        a, b = first[i], second[j]
        if a.tag != b.tag or a.spans != b.spans:
            return 1.0
        if structure_only or a.text == b.text:
            return 0.0
        key = (a.text, b.text)
        if key not in found:
            found[key] = Levenshtein.normalized_distance(*key)
        return found[key]

    return cost


class _Reader(HTMLParser):
    """Builds a table; Python's parser reads any text, and its time grows with the text's length.

    Attributes:
        table: the finished or open table.
        depth: 1 between <table> and </table>.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.table: TableNode | None = None
        self.depth = self._num_nodes = self._silent = 0
        self._group: TableNode | None = None
        self._row: TableNode | None = None
        self._cell: TableNode | None = None
        self._texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            if self.table is not None:
                raise Unreadable("a second table")
            self.table, self.depth = TableNode("table"), 1
        elif tag in _GROUPS and self.depth:
            self._end_row()
            self._group = self._added(self.table, TableNode("thead" if tag == "thead" else "tbody"))
        elif tag == "tr" and self.depth:
            self._end_row()
            if self._group is None:
                self._group = self._added(self.table, TableNode("tbody"))
            self._row = self._added(self._group, TableNode("tr"))
        elif tag in _CELLS and self._row is not None:
            self._end_cell()
            given = dict(attrs)
            spans = _span(given.get("colspan")), _span(given.get("rowspan"))
            self._cell = self._added(self._row, TableNode("td", spans))
        elif self._cell is not None:
            self._texts += [" "] * (tag in _BREAKS)
            self._silent += tag in _WORDLESS
        elif tag not in (*_AROUND, *_WITHOUT_TEXT):
            raise Unreadable(f"<{tag[:20]}> outside of a cell")

    def handle_endtag(self, tag: str) -> None:
        if tag == "table" and self.depth:
            self._end_row()
            self._group, self.depth = None, 0
        elif tag in _GROUPS and self.depth:
            self._end_row()
            self._group = None
        elif tag == "tr":
            self._end_row()
        elif tag in _CELLS:
            self._end_cell()
        elif tag in _WORDLESS:
            self._silent = max(0, self._silent - 1)

    def handle_data(self, data: str) -> None:
        if self._cell is not None:
            self._texts += [data] * (not self._silent)
        elif data.strip():
            raise Unreadable("text outside of a cell")

    def _added(self, parent: TableNode | None, child: TableNode) -> TableNode:
        self._num_nodes += 1
        if parent is None or self._num_nodes > MAX_NODES:
            raise Unreadable(f"more than {MAX_NODES} nodes")
        parent.children.append(child)
        return child

    def _end_cell(self) -> None:
        if self._cell is not None:
            self._cell.text = " ".join("".join(self._texts).split())
        self._cell, self._texts, self._silent = None, [], 0

    def _end_row(self) -> None:
        self._end_cell()
        self._row = None


def _span(text: str | None) -> int:
    """A colspan or rowspan; what is not a number from 1 to 999 is 1, as in a browser."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= 3 and int(text) else 1
