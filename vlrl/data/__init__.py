"""Rows of any common format, mixed and shuffled by pure functions of the run's seed, ready as samples.

file, folder or hub ──reader──► Record ──shape, template, root──► Row ──sampler, mixture──► SampleStream
"""

from vlrl.data.open import open_dataset, open_source, with_rewards
from vlrl.data.rows import Rows, StreamedRows
from vlrl.data.stream import Prepared, SampleStream, row_counts

__all__ = [
    "Prepared",
    "Rows",
    "SampleStream",
    "StreamedRows",
    "open_dataset",
    "open_source",
    "row_counts",
    "with_rewards",
]
