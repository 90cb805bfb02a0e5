"""docs/reference/metrics.md: every number in metrics.jsonl."""

from __future__ import annotations

from collections.abc import Iterable

from vlrl.cli.reference.markdown import MADE_BY, code, escape, page, table
from vlrl.tracking.method_metrics import Metric
from vlrl.tracking.metrics import FAMILIES, METRICS

HEAD = f"""# Every metric

{MADE_BY}

A line of `RUN/metrics.jsonl` is a step; TensorBoard and W&B get the same names. `policy/…`,
`off_policy/…` and `optim/…` are means over a step's updates. A metric without a unit is a pure number. NaN
and infinities are written as `null`.
"""
FAMILIES_HEAD = """## Families of names

A name in angle brackets is that of a reward, a source, a filter or a model; a number that no row above names
belongs to one of these.
"""


def metrics_page() -> str:
    """The page as Markdown."""
    parts = [HEAD]
    for prefix in dict.fromkeys(map(_prefix, METRICS)):
        rows = [(name, metric) for name, metric in METRICS.items() if _prefix(name) == prefix]
        parts += [f"## {prefix}", _table(rows)]
    parts += [FAMILIES_HEAD, _table(FAMILIES.items())]
    return page(parts)


def _prefix(name: str) -> str:
    return name.partition("/")[0]


def _table(rows: Iterable[tuple[str, Metric]]) -> str:
    return table(
        ("metric", "unit", "meaning"), [(code(name), m.unit, escape(f"{m.meaning}.")) for name, m in rows]
    )
