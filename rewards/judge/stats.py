"""What the judges of this process did: calls, tokens, cost, latency."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from vlrl.chat_client.client import RequestStats
from vlrl.scoring.metrics import publish_metrics


@dataclass(slots=True)
class JudgeStats(RequestStats):
    """One judge's numbers since they were last taken.

    Attributes:
        num_calls: verdicts that rewards asked for.
        num_cached: of them, those answered from the disk, or by the same question being asked at that moment.
        num_reasks: replies that held no verdict and were asked for once more.
        num_failures: questions left without a verdict.
        num_pairs: comparisons asked in both orders.
        num_disagreements: of them, those whose orders disagreed: scored as ties.
        num_cache_errors: verdicts that could not be written to the disk.
        tokens_in: prompt tokens, as the server counts them.
        tokens_out: completion tokens.
        cost: of both, by the endpoint's prices.
    """

    num_calls: int = 0
    num_cached: int = 0
    num_reasks: int = 0
    num_failures: int = 0
    num_pairs: int = 0
    num_disagreements: int = 0
    num_cache_errors: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float = 0.0

    def metrics(self) -> dict[str, float]:
        """The numbers by name; percentiles only if a request was answered, pairs only if there were any."""
        names = ["num_calls", "num_cached", "num_requests", "num_retries", "num_reasks", "num_failures"]
        names += ["num_cache_errors", "tokens_in", "tokens_out", "cost"]
        found = {name: float(getattr(self, name)) for name in names}
        if self.num_pairs:
            found["disagreement_fraction"] = self.num_disagreements / self.num_pairs
        if self.latencies_s:
            p50, p95 = np.percentile(np.asarray(self.latencies_s), (50, 95))
            found |= {"latency_p50_s": float(p50), "latency_p95_s": float(p95)}
        return found

    def reset(self) -> None:
        """Start again in place: requests in flight go on counting here."""
        fresh = JudgeStats()
        for item in fields(self):
            setattr(self, item.name, getattr(fresh, item.name))


_BY_MODEL: dict[str, JudgeStats] = {}


def judge_stats(model: str) -> JudgeStats:
    """The running numbers of a judge."""
    return _BY_MODEL.setdefault(model, JudgeStats())


@publish_metrics
def take_judge_metrics() -> dict[str, float]:
    """Every judge's numbers since the last taking, as `judge/<model>/<name>`, and start again.

    {} if no judge was asked. A slash in a model's name becomes a dash.
    """
    taken: dict[str, float] = {}
    for model, stats in sorted(_BY_MODEL.items()):
        if stats != JudgeStats():
            taken |= {f"judge/{model.replace('/', '-')}/{name}": n for name, n in stats.metrics().items()}
            stats.reset()
    return taken
