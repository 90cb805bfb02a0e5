"""A check's result in numbers: what `--json` prints and the tables show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from vlrl.check.data.nulls import Null, null_policies
from vlrl.check.data.records import Checked, CheckedSource, RowAudit
from vlrl.check.data.repeats import num_shared_media

MAX_BINS = 16
"""Bars of the histogram at most."""


def summarise(checked: Checked) -> dict[str, Any]:
    """The whole result as JSON: sources, token lengths, overlap of splits, null policies, every bad row."""
    audits, bad = checked.audits, checked.bad
    leaks = Counter(p.reason for audit in bad for p in audit.problems)
    return {
        "ok": not bad,
        "num_rows": len(audits),
        "num_bad": len(bad),
        "sources": [
            _source(source, [audit for audit in audits if audit.source == index])
            for index, source in enumerate(checked.sources)
        ],
        "token_limit": checked.token_limit,
        "token_histogram": histogram([a.num_tokens for a in audits if a.num_tokens is not None]),
        "overlap": {
            "rows_in_both_splits": leaks["in the held-out rows"],
            "media_in_both_splits": num_shared_media(checked.sources, audits),
        },
        "nulls": [
            {"source": source.section, **_null(null)}
            for index, source in enumerate(checked.sources)
            for null in null_policies([a.asked for a in audits if a.source == index and a.asked])
        ],
        "bad": [bad_row(checked, audit) for audit in bad],
        "notes": list(checked.notes),
        "duration_s": round(checked.duration_s, 3),
    }


def _null(null: Null) -> dict[str, Any]:
    """One null policy on one source's rows of a kind."""
    return {
        "kind": null.kind,
        "policy": null.name,
        "num_rows": null.num_rows,
        "score": round(null.score, 4),
        "chance": round(null.chance, 4),
        "error": round(null.error, 4),
        "marked": null.is_marked,
        "example": null.example,
    }


def bad_row(checked: Checked, audit: RowAudit) -> dict[str, Any]:
    """One bad row: where it stands and everything that is wrong with it."""
    return {
        "source": checked.sources[audit.source].section,
        "row": audit.row,
        "id": audit.id,
        "place": audit.place,
        "problems": [{"reason": p.reason, "message": p.message} for p in audit.problems],
    }


def histogram(values: Sequence[int]) -> list[dict[str, int]]:
    """Counts in bins of one round width: [{"from", "below", "num_rows"}]; empty for no values."""
    if not values:
        return []
    low, high = min(values), max(values)
    width = _round_width((high - low + 1) / MAX_BINS)
    start = low // width * width
    counts = Counter((value - start) // width for value in values)
    return [
        {"from": start + i * width, "below": start + (i + 1) * width, "num_rows": counts[i]}
        for i in range((high - start) // width + 1)
    ]


def _round_width(least: float) -> int:
    """The smallest of 1, 2, 5, 10, 20 … that is not below `least`."""
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power >= least:
                return factor * power
        power *= 10


def _source(source: CheckedSource, audits: Sequence[RowAudit]) -> dict[str, Any]:
    media = [medium for audit in audits for medium in audit.media]
    reasons = Counter(reason for audit in audits for reason in {p.reason for p in audit.problems})
    num_bad = sum(bool(audit.problems) for audit in audits)
    return {
        "section": source.section,
        "name": source.config.name,
        "num_rows": len(audits),
        "num_ok": len(audits) - num_bad,
        "num_bad": num_bad,
        "bad_by_reason": dict(reasons.most_common()),
        "num_images": sum(medium.kind == "image" for medium in media),
        "num_videos": sum(medium.kind == "video" for medium in media),
        "num_audios": sum(medium.kind == "audio" for medium in media),
        "num_distinct_media": len({medium.sha256 for medium in media}),
        "tokens": _spread([a.num_tokens for a in audits if a.num_tokens is not None]),
        "pixels": _sizes([(medium.width, medium.height) for medium in media if medium.kind != "audio"]),
    }


def _spread(values: Sequence[int]) -> dict[str, int] | None:
    if not values:
        return None
    median, p95 = np.percentile(values, [50, 95], method="higher")
    return {"min": min(values), "median": int(median), "p95": int(p95), "max": max(values)}


def _sizes(sizes: Sequence[tuple[int, int]]) -> dict[str, list[int]] | None:
    """[width, height] of the smallest, the median and the largest image, by number of pixels."""
    if not sizes:
        return None
    ordered = sorted(sizes, key=lambda size: (size[0] * size[1], size))
    chosen = {"min": ordered[0], "median": ordered[len(ordered) // 2], "max": ordered[-1]}
    return {name: list(size) for name, size in chosen.items()}
