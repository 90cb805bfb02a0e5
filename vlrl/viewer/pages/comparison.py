"""One HTML file of two evaluations side by side: the numbers, and the rows on which one earned more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vlrl.evaluation.kept import SAMPLES_FILE
from vlrl.experiments.compare import Comparison, PairedRow
from vlrl.tracking.rollouts.paths import ROLLOUTS
from vlrl.tracking.rollouts.read import read_rollouts
from vlrl.viewer.page import write_page
from vlrl.viewer.rollouts import Card, Record, RolloutColumn, build_cards

MAX_ROWS = 24
"""Rows shown of those that B won, and of those that it lost."""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows on which one of the two earned more, the largest difference first; not all of them are shown."""

    title: str
    num_rows: int
    cards: Sequence[Card]


def write_comparison(
    path: Path, a: Path, b: Path, rows: Sequence[PairedRow], comparisons: Sequence[Comparison]
) -> None:
    """Write the page.

    A row is shown if both folders keep its rollouts: `vlrl eval --out` keeps all, a run those of the report.

    Args:
        path: the .html file, replaced whole.
        a: the folder of the one.
        b: of the other.
        rows: that they share, of their last evaluations.
        comparisons: the numbers, see `vlrl.experiments.compare`.
    """
    by_how = {
        how: [_kept(folder, how) for folder in (a, b)] for how in dict.fromkeys(row.how for row in rows)
    }
    how, kept = next(((how, kept) for how, kept in by_how.items() if all(kept)), (rows[0].how, [{}, {}]))
    sections = [
        _section("B earned more", a, b, [row for row in rows if row.difference > 0 and row.how == how], kept),
        _section("A earned more", a, b, [row for row in rows if row.difference < 0 and row.how == how], kept),
    ]
    shown = {"how": how, "comparisons": comparisons, "sections": sections, "most": MAX_ROWS}
    write_page(path, "comparison.html.j2", a=a, b=b, **shown)


def _section(
    title: str, a: Path, b: Path, rows: Sequence[PairedRow], kept: Sequence[dict[tuple[str, str], Record]]
) -> ChangedRows:
    rows = sorted(rows, key=lambda row: -abs(row.difference))
    pairs = list(_pairs(rows, kept))
    columns = [
        RolloutColumn("A", a, [of_a for of_a, _ in pairs]),
        RolloutColumn("B", b, [of_b for _, of_b in pairs]),
    ]
    return ChangedRows(title, len(rows), build_cards(columns, MAX_ROWS))


def _pairs(
    rows: Sequence[PairedRow], kept: Sequence[dict[tuple[str, str], Record]]
) -> Iterator[tuple[Record, Record]]:
    """The rollouts of each row in both folders, named by set and id; a run's are not told apart by set."""
    for row in rows:
        of_a, of_b = (each.get((row.set, row.sample_id)) or each.get(("", row.sample_id)) for each in kept)
        if of_a and of_b:
            name = {"sample_id": f"{row.set}/{row.sample_id}" if row.set else row.sample_id}
            yield {**of_a, **name}, {**of_b, **name}


def _kept(folder: Path, how: str) -> dict[tuple[str, str], Record]:
    """A folder's rollouts of its last evaluation by set and id, the first of a row."""
    found: dict[tuple[str, str], Record] = {}
    for record in read_rollouts(folder / SAMPLES_FILE):
        answer = record.get("heldout")
        if answer and answer["how"] == how:
            found.setdefault((answer.get("set", ""), record["sample_id"]), record)
    for record in read_rollouts(folder / ROLLOUTS / "after.jsonl") if how == "sampled" else ():
        found.setdefault(("", record["sample_id"]), record)
    return found
