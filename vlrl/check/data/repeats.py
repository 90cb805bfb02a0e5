"""Rows that are there twice, and rows to train on that are also held out."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from vlrl.check.data.records import CheckedSource, Problem, RowAudit

Content = tuple[str | None, ...]


def with_repeats(sources: Sequence[CheckedSource], audits: Sequence[RowAudit]) -> list[RowAudit]:
    """The audits with a problem added to every repeat and every leak.

    A repeat is reported at the second and further rows of its split, a leak at the row to train on: leaving
    those out fixes the data and keeps the held-out rows comparable.
    """
    first: dict[tuple[str, Content, str | None], RowAudit] = {}
    held_rows: dict[Content, RowAudit] = {}
    held_media: dict[str, RowAudit] = {}
    by_id: dict[tuple[int, str, str], RowAudit] = {}
    for audit in audits:
        if sources[audit.source].split == "eval" and _is_known(audit):
            held_rows.setdefault(audit.content, audit)
            for medium in audit.media:
                held_media.setdefault(medium.sha256, audit)
    out = []
    for audit in audits:
        split, found = sources[audit.source].split, []
        if _is_known(audit):
            answer = audit.answer_sha256 if audit.is_preference else None
            earlier = first.setdefault((split, audit.content, answer), audit)
            if earlier is not audit:
                found.append(_repeat(earlier, audit, sources))
            # Published sets of several files number the rows of each from 0.
            file = audit.place.rpartition(":")[0]
            named = by_id.setdefault((audit.source, file, audit.id), audit)
            if named is not audit and not found:
                found.append(_same_id(named, sources))
            if split == "train":
                found += _leaks(audit, held_rows, held_media, sources)
        out.append(replace(audit, problems=(*audit.problems, *found)))
    return out


def num_shared_media(sources: Sequence[CheckedSource], audits: Sequence[RowAudit]) -> int:
    """Distinct media that stand in rows to train on and in held-out rows alike."""
    media: dict[str, set[str]] = defaultdict(set)
    for audit in audits:
        media[sources[audit.source].split] |= {medium.sha256 for medium in audit.media}
    return len(media["train"] & media["eval"])


def _is_known(audit: RowAudit) -> bool:
    """A row with a medium that could not be opened has no content to compare."""
    unknown = {"unreadable row", "broken medium", "bad prompt", "kills the reader"}
    return not any(problem.reason in unknown for problem in audit.problems)


def _repeat(earlier: RowAudit, audit: RowAudit, sources: Sequence[CheckedSource]) -> Problem:
    same = f"the same prompt and media as {_place(earlier, sources)}"
    if earlier.answer_sha256 == audit.answer_sha256:
        return Problem("duplicate", same)
    return Problem("contradiction", f"{same}, but with another answer: at most one of them is right")


def _same_id(named: RowAudit, sources: Sequence[CheckedSource]) -> Problem:
    text = (
        f"the id of {_place(named, sources)}, another row: errors, samples.jsonl and rollouts name rows by "
        "it; give each row its own, or none, and it is named by file and line"
    )
    return Problem("duplicate id", text)


def _leaks(
    audit: RowAudit,
    rows: dict[Content, RowAudit],
    media: dict[str, RowAudit],
    sources: Sequence[CheckedSource],
) -> list[Problem]:
    if held := rows.get(audit.content):
        text = f"the same prompt and media as the held-out {_place(held, sources)}"
        return [Problem("in the held-out rows", text)]
    for number, medium in enumerate(() if audit.is_episode else audit.media, start=1):
        if held := media.get(medium.sha256):
            text = f"its {medium.kind} {number} is also in the held-out {_place(held, sources)}"
            return [Problem("medium in the held-out rows", text)]
    return []


def _place(audit: RowAudit, sources: Sequence[CheckedSource]) -> str:
    return f"{audit.id!r} ({sources[audit.source].section}, row {audit.row})"
