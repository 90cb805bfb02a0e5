"""The weighted sum of rewards: parts, options, keywords, and failures that are not zeros (law 7)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_config, make_sample, make_trajectory
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.algorithm.advantage import group_advantages
from vlrl.config import parse_config
from vlrl.config.options import RewardConfig
from vlrl.errors import ConfigError
from vlrl.rollout.groups import score_groups
from vlrl.scoring.compose import ComposedReward, RewardFailure, Term, total, weight_at
from vlrl.scoring.functions import EXPLANATION_CHARS, find_reward
from vlrl.types import Group, Score, Trajectory

PLUG_INS = """
import asyncio
import numpy as np

def length(completion, answer, per=10):
    return len(completion) / per

def parts(completion, answer):
    return {"found": answer in completion, "short": 0.5}

def explained(completion, answer):
    from vlrl.rewards import Scored
    return Scored(0.5, explanation=3000 * "x")

async def slow(completion, answer):
    await asyncio.sleep(0.001)
    return 0.25

class Judge:
    async def __call__(self, completion, answer):
        return 0.75
judge = Judge()

def only(completion, gold, *, level, prompt, sample, media, trajectory):
    assert gold == "8" and sample.id == "s" and prompt == sample.messages and media == ()
    assert trajectory.completion == completion
    return float(level)

def everything(completion, answer, **context):
    return float(sorted(context) == ["level", "tag"])

def keywords(completion, answer, **context):
    return float(context["strict"])

def clash(completion, answer, **context):
    return 1.0

def bad(completion, answer):
    return {"nan": float("nan"), "inf": float("inf"), "none": None, "text": "1", "list": [1], "empty": {},
            "nothing": {"a": None}}[completion]

def raises(completion, answer):
    raise KeyError("no such box")

async def raises_later(completion, answer):
    raise TimeoutError("judge is away")

def numpy_scalar(completion, answer):
    return np.float32(0.5)

def numpy_parts(completion, answer):
    return {"a": np.int64(2), "b": np.float64(0.5), "c": np.bool_(True)}

calls = []

def flaky(completion, answer):
    calls.append(completion)
    if calls.count(completion) == 1:
        raise OSError("once")
    return 1.0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rewards_of_mine.py"
    path.write_text(PLUG_INS)
    return path


opened: list[ComposedReward] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    while opened:
        opened.pop().close()


def compose(*rewards: dict[str, Any], **scoring: Any) -> ComposedReward:
    tree = {
        "model": {"path": "x"},
        "data": {"train": {"name": "digit_sum"}},
        "rewards": list(rewards),
        "scoring": {"num_workers": 1, **scoring},
    }
    config = parse_config(tree)
    opened.append(ComposedReward(config.rewards, scoring=config.scoring))
    return opened[-1]


def trajectory(completion: str = "<think></think><answer>8</answer>", **metadata: Any) -> Trajectory:
    sample = make_sample(answer="8", messages=({"role": "user", "content": "?"},), metadata=metadata)
    return make_trajectory(sample, [1, 2], reward=None, completion=completion)


def score(reward: ComposedReward, scored: Trajectory | None = None) -> Score:
    return asyncio.run(reward.score(scored or trajectory()))


def test_the_total_is_the_weighted_sum_and_parts_are_unweighted(file: Path) -> None:
    reward = compose(
        {"name": "answer_exact", "weight": 2.0},
        {"name": f"{file}:parts", "weight": -0.5},
        {"name": "think_answer_format", "weight": 0.0},
    )
    found = score(reward)
    assert found.parts == {"answer_exact": 1.0, "found": 1.0, "short": 0.5, "think_answer_format": 1.0}
    assert found.total == 2.0 * 1.0 - 0.5 * (1.0 + 0.5) + 0.0


def test_explanations_are_kept_by_the_name_of_their_reward(file: Path) -> None:
    found = score(compose({"name": f"{file}:explained"}, {"name": "answer_exact"}))
    assert found.explanations == {"explained": "x" * EXPLANATION_CHARS}
    assert found.parts == {"explained": 0.5, "answer_exact": 1.0}


def test_async_rewards_are_awaited(file: Path) -> None:
    assert score(compose({"name": f"{file}:slow"})).total == 0.25
    assert score(compose({"name": f"{file}:judge"})).total == 0.75


def test_a_reward_is_given_the_keywords_it_names_and_no_others(file: Path) -> None:
    assert score(compose({"name": f"{file}:only"}), trajectory("x", level=3, unasked=1)).total == 3.0


def test_a_reward_with_keywords_is_given_all_of_the_metadata_and_nothing_large(file: Path) -> None:
    assert score(compose({"name": f"{file}:everything"}), trajectory(level=3, tag="a")).total == 1.0


def test_options_reach_the_reward_and_win_over_metadata(file: Path) -> None:
    assert score(compose({"name": f"{file}:length"}), trajectory("x" * 10)).total == 1.0
    with_option = compose({"name": f"{file}:length", "options": {"per": 5}})
    assert score(with_option, trajectory("x" * 10, per=1)).total == 2.0
    assert score(compose({"name": f"{file}:keywords", "options": {"strict": 1}})).total == 1.0


def test_an_option_that_the_reward_would_never_see_is_refused(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"length' takes no option 'pre'.*completion, answer, per"):
        compose({"name": f"{file}:length", "options": {"pre": 5}})


def test_metadata_named_like_the_arguments_does_no_harm(file: Path) -> None:
    clashing = trajectory(answer="wrong", completion_id=1)
    clashing.sample.metadata["completion"] = "wrong"  # type: ignore[index]
    assert score(compose({"name": f"{file}:clash"}), clashing).total == 1.0


def test_two_rewards_of_one_name_keep_their_parts_apart(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "others.py"
    other.write_text("def length(completion, answer):\n    return 7\n")
    found = score(compose({"name": f"{file}:length"}, {"name": f"{other}:length"}), trajectory("x" * 10))
    assert found.parts == {"length": 1.0, "length_2": 7.0}
    assert found.total == 8.0


def test_numpy_numbers_are_numbers(file: Path) -> None:
    assert score(compose({"name": f"{file}:numpy_scalar"})).parts == {"numpy_scalar": 0.5}
    assert score(compose({"name": f"{file}:numpy_parts"})).total == 3.5


@pytest.mark.parametrize("kind", ["nan", "inf", "none", "text", "list", "empty", "nothing"])
def test_what_is_no_finite_number_is_a_failure_that_names_the_sample(file: Path, kind: str) -> None:
    with pytest.raises(RewardFailure, match="reward 'bad', sample 's': "):
        score(compose({"name": f"{file}:bad"}), trajectory(kind))


@pytest.mark.parametrize(
    ("name", "message"),
    [("raises", "KeyError: 'no such box'"), ("raises_later", "TimeoutError: judge is away")],
)
def test_an_exception_is_a_failure_that_names_the_sample(file: Path, name: str, message: str) -> None:
    with pytest.raises(RewardFailure, match=f"reward '{name}', sample 's': {message}"):
        score(compose({"name": "answer_exact"}, {"name": f"{file}:{name}"}))


def test_a_failure_is_retried_once_and_then_no_score(file: Path) -> None:
    flaky = compose({"name": f"{file}:flaky"})
    group = Group([trajectory("a"), trajectory("b")])
    assert asyncio.run(score_groups([group], flaky.score_all)) == []
    assert [t.score.total for t in group.trajectories if t.score] == [1.0, 1.0]

    broken = Group([trajectory("nan"), trajectory("inf")])
    failures = asyncio.run(score_groups([broken], compose({"name": f"{file}:bad"}).score_all))
    assert [str(failure) for failure in failures] == [
        "reward 'bad', sample 's': bad=nan",
        "reward 'bad', sample 's': bad=inf",
    ]
    assert broken.failed
    assert [t.score for t in broken.trajectories] == [None, None]


def test_a_missing_answer_is_a_failure_and_no_zero() -> None:
    unanswered = make_trajectory(make_sample(id="no-answer"), [1], reward=None, completion="x")
    with pytest.raises(RewardFailure, match=r"sample 'no-answer': ValueError: the sample has no 'answer'"):
        score(compose({"name": "answer_exact"}), unanswered)


def test_no_rewards_at_all_is_refused() -> None:
    with pytest.raises(ConfigError, match="rewards is empty"):
        compose()


def test_beside_a_teacher_there_may_be_no_reward() -> None:
    config = make_config(rewards=[], algorithm={"teacher": {"path": "x"}})
    with ComposedReward.of_run(config, {"": ()}) as reward:
        assert reward.optional
        assert score(reward) == Score(0.0, {})


def test_an_unknown_reward_names_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'answer_exact'"):
        compose({"name": "answer_exakt"})


def test_a_source_has_its_own_rewards(file: Path) -> None:
    run = [RewardConfig(name="answer_exact")]
    own = [RewardConfig(name=f"{file}:length", weight=2.0)]
    reward = ComposedReward(run, {"boxes": own, "texts": []})
    assert [reward.first_part(s) for s in ("boxes", "texts", "")] == [
        "length",
        "answer_exact",
        "answer_exact",
    ]
    for source, parts in (("boxes", {"length": 0.2}), ("texts", {"answer_exact": 0.0})):
        scored = make_trajectory(make_sample(answer="8", source=source), [1], completion="no")
        assert asyncio.run(reward.score(scored)).parts == parts


def test_samples_without_any_reward_are_refused() -> None:
    own = [RewardConfig(name="answer_exact")]
    assert ComposedReward([], {"a": own, "b": own}).first_part("b") == "answer_exact"
    for by_source in ({"a": own, "b": []}, {}, None):
        with pytest.raises(ConfigError, match="rewards is empty"):
            ComposedReward([], by_source)


# Weights, gates and clips: the formula on top of vlrl/scoring/compose.py.

GATED = """
def a(completion, answer):
    return float(completion.split()[0])

def b(completion, answer):
    return float(completion.split()[1])

def c(completion, answer):
    return float(completion.split()[2])

def parts(completion, answer):
    return {"a": 1.0, "parts": 2.0}
"""


@pytest.fixture
def gated(tmp_path: Path) -> str:
    (tmp_path / "gated.py").write_text(GATED)
    return str(tmp_path / "gated.py")


def test_behind_a_closed_gate_the_others_can_only_cost(gated: str) -> None:
    reward = compose(
        {"name": f"{gated}:a", "weight": 0.2, "gate": True},
        {"name": f"{gated}:b"},
        {"name": f"{gated}:c", "weight": 0.5},
    )
    assert score(reward, trajectory("1 1 -1")).total == pytest.approx(0.2 + 1 - 0.5)
    closed = score(reward, trajectory("0.5 1 -1"))
    assert closed.total == pytest.approx(0.2 * 0.5 - 0.5)
    assert closed.parts == {"a": 0.5, "b": 1.0, "c": -1.0}


def test_a_gate_is_a_threshold_and_several_must_all_hold(gated: str) -> None:
    reward = compose(
        {"name": f"{gated}:a", "weight": 0.0, "gate": 0.5},
        {"name": f"{gated}:b", "weight": 0.0, "gate": 0.5},
        {"name": f"{gated}:c"},
    )
    found = {text: score(reward, trajectory(text)).total for text in ("0.5 0.5 1", "0.4 1 1", "1 0 1")}
    assert found == {"0.5 0.5 1": 1.0, "0.4 1 1": 0.0, "1 0 1": 0.0}


def test_clips_bound_what_counts_and_not_what_is_logged(gated: str) -> None:
    reward = compose(
        {"name": f"{gated}:a", "clip": [0, 1], "gate": 2}, {"name": f"{gated}:b"}, clip=[-2, 1.5]
    )
    assert score(reward, trajectory("3 0 0")) == Score(1.0, {"a": 3.0, "b": 0.0})
    assert score(reward, trajectory("3 9 0")).total == 1.5
    assert score(reward, trajectory("-5 -9 0")).total == -2.0


def test_a_weight_may_change_with_the_step(gated: str) -> None:
    reward = compose({"name": f"{gated}:a", "weight": [[10, 1.0], [20, 0.0], [30, -2.0]]})
    steps = {0: 1.0, 10: 1.0, 15: 0.5, 20: 0.0, 25: -1.0, 30: -2.0, 99: -2.0}
    found = {step: asyncio.run(reward.score(trajectory("1 0 0"), step)).total for step in steps}
    assert found == pytest.approx(steps)


knots = st.lists(st.tuples(st.integers(0, 500), st.floats(-9, 9)), min_size=1, unique_by=lambda k: k[0])


@settings(deadline=None)
@given(knots.map(sorted), st.integers(0, 600))
def test_a_weight_by_steps_is_numpys_interpolation(weight: list[tuple[int, float]], step: int) -> None:
    steps, values = zip(*weight, strict=True)
    assert weight_at(weight, step) == pytest.approx(float(np.interp(step, steps, values)), abs=1e-9)


numbers = st.lists(st.floats(-10, 10), min_size=3, max_size=3)


@settings(deadline=None)
@given(numbers, numbers, st.floats(-5, 5))
def test_opening_a_gate_never_lowers_what_the_others_give(
    values: list[float], weights: list[float], threshold: float
) -> None:
    def of(gate_value: float) -> float:
        configs = [RewardConfig(name="answer_exact", weight=w) for w in weights]
        configs[0] = configs[0].model_copy(update={"gate": threshold})
        terms = [Term(i, "x", config, find_reward(config.name)) for i, config in enumerate(configs)]
        return total(terms, [gate_value, *values[1:]], step=0) - weights[0] * gate_value

    assert of(threshold) >= of(threshold - 1) - 1e-9
    plain = sum(w * v for w, v in zip(weights[1:], values[1:], strict=True))
    assert of(threshold) == pytest.approx(plain, abs=1e-9)


def test_weights_that_add_up_to_the_same_are_worth_the_same() -> None:
    """0.1 + 0.2 and 0.3 are one reward, and 0.1 + 0.2 - 0.3 is none; in whatever order rewards are named."""
    weights = (0.1, 0.2, 0.3)

    def of(order: Sequence[int], values: Sequence[float]) -> float:
        configs = [RewardConfig(name="answer_exact", weight=weights[i]) for i in order]
        terms = [Term(n, "x", config, find_reward(config.name)) for n, config in enumerate(configs)]
        return total(terms, [values[i] for i in order], step=0)

    for order in permutations(range(3)):
        assert of(order, (1, 1, -1)) == 0.0
        assert of(order, (1, 1, 1)) == of((0, 1, 2), (1, 1, 1))
        both = [of(order, (1, 1, 0)), of(order, (0, 0, 1))]
        assert not group_advantages(both, scale_by_std=True).any()


def test_parts_of_one_name_are_told_apart(gated: str) -> None:
    found = score(compose({"name": f"{gated}:a"}, {"name": f"{gated}:parts"}), trajectory("4 0 0"))
    assert found.parts == {"a": 4.0, "parts.a": 1.0, "parts": 2.0}
    assert found.total == 7.0


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"weight": []}, "must be at least 0 and rise"),
        ({"weight": [[5, 1.0], [5, 2.0]]}, "must be at least 0 and rise"),
        ({"weight": [[-1, 1.0]]}, "must be at least 0 and rise"),
        ({"clip": [1, 1]}, "must be .lowest, highest."),
        ({"timeout_s": 0}, "greater than 0"),
        ({"adapter": "trll"}, "trl_text"),
        ({"wieght": 1}, "weight"),
    ],
)
def test_options_that_make_no_sense_are_refused(option: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        compose({"name": "answer_exact", **option})
