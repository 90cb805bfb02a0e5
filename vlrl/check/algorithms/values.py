"""The contract of an advantage of a critic's values: a number for each step of an episode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from vlrl.algorithm.critic.episodes import EstimateFn, TokenTable, estimates_of
from vlrl.check.algorithms.check import config_of, judged
from vlrl.config.algorithm import bound_credit
from vlrl.errors import ConfigError

NUM_STEPS = (1, 2, 7, 300)
SCALES = (0.0, 1e-6, 1.0, 1e6)


def check_values(
    name: str, own: Mapping[str, Any], shared: Mapping[str, Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Try an advantage that names `values`; as `vlrl.check.algorithms.advantage.check_advantage`.

    Args:
        name: a registered one, or ./file.py:function.
        own: its options.
        shared: those beside it in the config, such as discount.
        options: both, for the result.
    """
    config = config_of({"credit": {"name": name, "options": own}, **shared, "critic": {}}, "credit")
    return judged(name, options, CLAUSES, bound_credit(config).__call__)


def steps(advantages_of: EstimateFn) -> str:
    """A finite number for each step; the values stay as they were."""
    for table in _episodes():
        try:
            found = estimates_of(table, advantages_of, "token")
        except ConfigError as error:
            return str(error)
        largest = float(np.abs(found.returns).max())
        if not np.allclose(found.returns - found.advantages, table.values, atol=1e-9 * largest):
            return "changes the values in place; the critic's targets are made of them afterwards"
    return ""


def repeats(advantages_of: EstimateFn) -> str:
    """Two calls agree to the last bit: every rank computes the advantages of all."""
    for table in _episodes():
        one, two = (estimates_of(table, advantages_of, "token").advantages for _ in range(2))
        if not np.array_equal(one, two):
            return "two calls with the same episode differ; ranks would train different advantages"
    return ""


CLAUSES: Mapping[str, Callable[[EstimateFn], str]] = {"steps": steps, "repeats": repeats}


def _episodes() -> Iterator[TokenTable]:
    """Episodes of turns of one token."""
    rng = np.random.default_rng(0)
    for count in NUM_STEPS:
        for scale in SCALES:
            rewards, values = scale * rng.normal(size=(2, count))
            places = np.stack([np.zeros(count, np.int64), np.arange(count), np.arange(count)], axis=1)
            yield TokenTable(values, rewards, np.zeros(count), places)
