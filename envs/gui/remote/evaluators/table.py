"""What OSWorld's evaluators need, as a table: which run on files and a machine's state, which need more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

KINDS = ("metrics", "getters")
NEEDS = {
    "": "files and the machine's server only",
    "network": "the network, from the host",
    "chrome": "Chrome's debugging port",
    "vlc": "VLC's web interface",
    "google drive": "an account of Google Drive",
    "code": "refused: runs Python that the agent may have written, on the host",
}


def evaluators_table(described: Mapping[str, Any]) -> str:
    """Markdown: counts by what is needed, then the packages, then what this interpreter lacks.

    Args:
        described: of `vlrl.envs.gui.remote.evaluators.package.described`.
    """
    counts = {kind: Counter(_need(row) for row in described[kind].values()) for kind in KINDS}
    needs = [[NEEDS[need], *(str(counts[kind][need]) for kind in KINDS)] for need in NEEDS]
    needs.append(["all", *(str(len(described[kind])) for kind in KINDS)])
    packages = Counter(package for row in described["metrics"].values() for package in _packages(row))
    shares = [
        [name, str(number)] for name, number in sorted(packages.items(), key=lambda each: (-each[1], each[0]))
    ]
    lacking = [
        [kind, name, ", ".join(row["missing"])]
        for kind in KINDS
        for name, row in sorted(described[kind].items())
        if row["missing"]
    ]
    parts = [
        _table(["needs", *KINDS], needs),
        _table(["package", "metrics that need it"], shares),
        _table(["", "cannot run here", "for lack of"], lacking),
    ]
    return "\n\n".join(parts)


def _need(row: Mapping[str, Any]) -> str:
    """The first of NEEDS that stands in the way of a run without applications."""
    return next((need for need in reversed(NEEDS) if need in row["wants"]), "")


def _packages(row: Mapping[str, Any]) -> set[str]:
    return {*row["packages"], *row["missing"]}


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
