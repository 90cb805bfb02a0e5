"""Numbers that rewards publish, from several processes."""

from __future__ import annotations

from vlrl.scoring.metrics import merged_metrics


def test_counts_are_added_and_shares_and_times_averaged() -> None:
    one = {"judge/m/num_calls": 3.0, "judge/m/disagreement_fraction": 0.5, "judge/m/latency_p50_s": 2.0}
    other = {"judge/m/num_calls": 1.0, "judge/m/disagreement_fraction": 0.0}
    assert merged_metrics([one, other]) == {
        "judge/m/num_calls": 4.0,
        "judge/m/disagreement_fraction": 0.25,
        "judge/m/latency_p50_s": 2.0,
    }
    assert merged_metrics([]) == {}
