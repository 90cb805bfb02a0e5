"""What is unusual in made-up numbers is found, with its steps; what is usual is not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from vlrl.viewer.browse.health import HealthFinding, findings

NOISE = np.random.default_rng(0).normal(0, 1, 400)


def series(name: str, value: Callable[[int], float], count: int = 60) -> list[dict[str, float | None]]:
    return [{"step": step, name: value(step)} for step in range(count)]


def found(
    *lines: list[dict[str, float | None]], failures: dict[str, dict[int, tuple[int, int]]] | None = None
) -> list[HealthFinding]:
    steps: dict[float | None, dict[str, float | None]] = {}
    for line in lines:
        for each in line:
            steps.setdefault(each["step"], {}).update(each)
    return findings(list(steps.values()), failures or {})


def test_noise_and_slow_changes_are_usual() -> None:
    calm = [
        series("policy/entropy", lambda s: 0.6 - 0.004 * s + 0.02 * NOISE[s]),
        series("policy/kl_reference", lambda s: abs(0.001 * s + 0.0005 * NOISE[s])),
        series("optim/grad_norm", lambda s: 1 + 0.25 * NOISE[s + 60]),
        series("reward/zero_variance_groups", lambda s: 0.2 + 0.1 * NOISE[s + 120] ** 2),
        series("reward/mean", lambda s: 0.01 * s),
        series("heldout/accuracy_greedy", lambda s: 0.3 + 0.008 * s),
    ]
    assert found(*calm, failures={"maze": {s: (1, 32) for s in range(60)}}) == []


def test_entropy_collapse_from_the_step_where_it_stays_low() -> None:
    (finding,) = found(series("policy/entropy", lambda s: 0.6 if s < 40 else 0.02))
    assert (finding.kind, finding.metric, finding.first, finding.last) == (
        "entropy collapse",
        "policy/entropy",
        40,
        59,
    )
    assert "from 0.6 to 0.02" in finding.words
    assert found(series("policy/entropy", lambda s: 0.02 if s == 40 else 0.6)) == []  # it came back


def test_reward_up_with_held_out_down() -> None:
    reward = series("reward/mean", lambda s: 0.2 + 0.01 * s + 0.01 * NOISE[s])
    held_out = [{"step": s, "heldout/accuracy_greedy": v} for s, v in ((10, 0.5), (30, 0.6), (50, 0.45))]
    (finding,) = found(reward, held_out)
    assert (finding.kind, finding.first, finding.last) == ("reward up, held-out down", 30, 50)
    both = [{"step": s, "reward/mean": 0.8 - 0.01 * s} for s in range(60)]
    assert found(both, held_out) == []  # both fall: nothing is learned by heart


def test_spikes_of_kl_and_gradient_are_single_findings() -> None:
    (kl,) = found(
        series("policy/kl_reference", lambda s: 0.05 + 0.002 * NOISE[s] + (1.0 if s in (30, 31) else 0))
    )
    assert (kl.kind, kl.first, kl.last) == ("KL spike", 30, 31)
    (norm,) = found(series("optim/grad_norm", lambda s: 1 + 0.1 * NOISE[s] + (40 if s == 50 else 0)))
    assert (norm.kind, norm.first, norm.last) == ("gradient spike", 50, 50)


def test_groups_that_come_to_be_equal() -> None:
    (finding,) = found(series("reward/zero_variance_groups", lambda s: min(0.95, 0.1 + 0.02 * s)))
    assert finding.kind == "equal groups" and 30 < finding.first < 45 and finding.last == 59
    assert found(series("reward/zero_variance_groups", lambda s: 0.8)) == []  # it always was so


def test_one_source_that_fails_is_named() -> None:
    failures = {
        "maze": {s: (0, 16) for s in range(20)},
        "desk": {s: (6 if s > 11 else 0, 16) for s in range(20)},
    }
    (finding,) = found(failures=failures)
    assert (finding.kind, finding.first, finding.last) == ("failures: desk", 12, 19)
    assert "48 of 128 rollouts of desk" in finding.words
    assert found(failures={"maze": {3: (1, 2)}}) == []  # a single one is no pattern


def test_missing_numbers_and_short_runs_are_nothing() -> None:
    assert found() == []
    assert found(series("policy/entropy", lambda s: 0.6 if s < 2 else 0.0, count=5)) == []
    assert findings([{"step": 0, "policy/entropy": None}], {}) == []
