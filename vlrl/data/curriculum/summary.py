"""A file of pass rates in numbers, for the commands that show them."""

from __future__ import annotations

from typing import Any

import numpy as np

from vlrl.config import Config
from vlrl.config.data import DatasetConfig
from vlrl.data.curriculum.open import rates_beside
from vlrl.data.curriculum.rate_file import RateFile
from vlrl.data.open import open_dataset

NUM_BINS = 10
"""Of the histogram of rows that pass now and then."""


def kept_rates(config: Config, options: DatasetConfig, section: str) -> list[dict[str, Any]]:
    """Numbers of each file of rates that is kept of a source's rows, as `vlrl data check` prints them."""
    rows = open_dataset(options, section)
    return [
        {"section": section, "path": str(path), **rate_summary(rates)}
        for path, rates in rates_beside(config, options, rows)
    ]


def rate_summary(rates: RateFile) -> dict[str, Any]:
    """Numbers of a file of rates: how many rows pass never, always and between, in tenths."""
    known = rates.rates[rates.scored > 0]
    between = known[(known > 0) & (known < 1)]
    bins, _ = np.histogram(between, bins=NUM_BINS, range=(0.0, 1.0))
    return {
        "num_rows": rates.header.num_rows,
        "num_rated": int(known.size),
        "num_unusable": int(rates.unusable.sum()),
        "num_missing": int(rates.missing.size),
        "pass_rate_mean": float(known.mean()) if known.size else None,
        "num_never": int((known == 0).sum()),
        "num_always": int((known == 1).sum()),
        "between": bins.tolist(),
        "num_samples": rates.header.num_samples,
        "pass_threshold": rates.header.pass_threshold,
        "reward": rates.header.reward,
        "model": rates.header.model,
        "data": rates.header.data,
    }
