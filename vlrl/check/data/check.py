"""The whole check: plan, audit in parallel, find repeats."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence

from vlrl.check.data.audit import prompt_limit
from vlrl.check.data.records import Checked, Job, RowAudit
from vlrl.check.data.repeats import with_repeats
from vlrl.check.data.workers import audit_rows

ROWS_PER_WORKER = 64
"""A process that would get fewer rows than this is not worth its start."""


def check_data(
    job: Job,
    notes: Sequence[str] = (),
    *,
    num_workers: int | None = None,
    on_row: Callable[[RowAudit], None] = lambda audit: None,
) -> Checked:
    """Audit every row of a job, then compare the rows with each other.

    Args:
        job: of `vlrl.check.data.plan.plan_check`.
        notes: what could not be checked.
        num_workers: processes; by default as many as there are cores, fewer for few rows.
        on_row: called with each row's result as it comes in, without repeats.

    Raises:
        VlrlError: what stopped a worker before its first row.
    """
    begin = time.monotonic()
    num_rows = sum(source.num_rows for source in job.sources)
    most = math.ceil(num_rows / ROWS_PER_WORKER)
    audits = audit_rows(job, num_workers or min(len(os.sched_getaffinity(0)), most), on_row)
    return Checked(
        sources=job.sources,
        audits=with_repeats(job.sources, audits),
        notes=notes,
        token_limit=min(prompt_limit(job.config, s) for s in job.sources) if job.with_model else None,
        duration_s=time.monotonic() - begin,
    )
