"""What a loss of preferences is computed of: groups of completions, and those of other rows for the KL."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import make_config, make_sample, no_pixels

from vlrl import sft
from vlrl.config.learning.preferences import PreferencesConfig
from vlrl.errors import ConfigError
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.preferences import preference_groups, train_once, train_reward_model_once
from vlrl.tracking.console import TrainConsole
from vlrl.trainer.objective import rl_objective
from vlrl.types import Group, Sample


class Letters:
    """A processor whose tokens are characters."""

    def encode_target(self, text: str, opened: str = "", *, closed: bool = False) -> Any:
        return np.array([*map(ord, text), 0, *([1] if closed else [])])


def groups_of(samples: list[Sample], **options: Any) -> list[Group]:
    return preference_groups(samples, Letters(), PreferencesConfig(**options))  # type: ignore[arg-type]


def spelled(groups: list[Group]) -> list[tuple[str, list[tuple[str, float]]]]:
    return [
        (
            group.trajectories[0].sample.id,
            [
                (t.completion, float(credit.advantages[0][-1]))
                for t, credit in zip(group.trajectories, group.credits, strict=True)
            ],
        )
        for group in groups
    ]


PAIRS = [make_sample([1, 2, i], id=str(i), target=f"good{i}", rejected=f"bad{i}") for i in range(2)]


def test_a_pair_is_a_group() -> None:
    assert spelled(groups_of(PAIRS)) == [
        ("0", [("good0", 1), ("bad0", -1)]),
        ("1", [("good1", 1), ("bad1", -1)]),
    ]


def test_the_kl_is_measured_on_completions_of_other_rows() -> None:
    assert spelled(groups_of(PAIRS, loss="kto")) == [
        ("0", [("good0", 1), ("good1", 0)]),
        ("1", [("good1", 1), ("bad0", 0)]),
        ("0", [("bad0", -1), ("bad1", 0)]),
        ("1", [("bad1", -1), ("good0", 0)]),
    ]
    labelled = [make_sample([1, i], id=str(i), target=f"t{i}", label=i == 0) for i in range(3)]
    assert spelled(groups_of(labelled, loss="kto")) == [
        ("0", [("t0", 1), ("t1", 0)]),
        ("1", [("t1", -1), ("t2", 0)]),
        ("2", [("t2", -1), ("t0", 0)]),
    ]


def test_a_configs_preferences_are_packed_in_whole_groups() -> None:
    config = make_config(preferences={})
    options = PackOptions.of(config)
    assert options.aggregation == PackOptions.of(config, config.algorithm).aggregation == "group"
    assert PackOptions.of(make_config()).aggregation == "token"
    [[batch]] = pack(groups_of(PAIRS), no_pixels, options)
    assert batch.group_ids is not None
    assert batch.group_ids.tolist() == [0] * 11 + [1] * 11
    assert np.allclose(batch.weights, 0.5)


@pytest.mark.parametrize(
    ("algorithm", "key"),
    [
        ({"kl_coef": 0.1}, "kl_coef"),
        ("gspo", "preset"),
        ({"entropy_coef": 0.1}, "entropy_coef"),
        ({"entropy_adaptive": {"target": 1.0}}, "entropy_adaptive"),
        ({"selections": "top_entropy"}, "selections"),
        ({"teacher": {"path": "teacher"}}, "teacher"),
    ],
)
def test_what_pairs_do_not_read_is_refused(algorithm: Any, key: str) -> None:
    with pytest.raises(ConfigError, match=f"algorithm.{key}=.* has no effect with preferences"):
        make_config(preferences={}, algorithm=algorithm)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"loss": "dpp"}, "did you mean 'dpo'"),
        ({"loss": {"name": "ipo", "options": {"mean": 1}}}, "takes no option 'mean'"),
        ({"loss": {"name": "dpo", "options": {"label_smoothing": 0.7}}}, "must be at least 0 and below 0.5"),
        ({"loss": "kto", "batch_size": 1}, "batch_size=1 with loss=kto"),
        ({"loss": "reward", "beta": 0}, "greater than 0"),
        ({"loss": "bradley_terry", "beta": 0.2}, "beta=0.2 has no effect with loss=bradley_terry.*loss=dpo"),
        ({"loss": "bradley_terry", "reference": "none"}, "reference=none has no effect"),
        ({"loss": "ipo", "margin": "by"}, "margin=by has no effect with loss=ipo.*loss=bradley_terry"),
        ({"margin": "by"}, "margin=by has no effect with loss=dpo"),
        ({"loss": {"name": "bradley_terry", "options": {"center_coef": -1}}}, "must be at least 0"),
    ],
)
def test_bad_options_are_refused_when_the_config_is_read(options: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make_config(preferences=options)


def test_other_commands_refuse_what_they_would_not_do() -> None:
    with pytest.raises(ConfigError, match=r"groups; set preferences\.loss=dpo"):
        rl_objective(make_config(preferences={"loss": "kto"}))
    with pytest.raises(ConfigError, match="train with `vlrl dpo`"):
        sft.require_no_preferences(make_config(preferences={}))
    assert rl_objective(make_config()) == "grpo"


REWARD_MODEL: dict[str, Any] = {"loss": "bradley_terry"}


def test_commands_train_what_they_say() -> None:
    policy, scores = make_config(preferences={}), make_config(preferences=REWARD_MODEL)
    with pytest.raises(ConfigError, match=r"bradley_terry trains a reward model.*`vlrl reward-model`"):
        train_once(scores, TrainConsole("test", 1), resume=False)
    with pytest.raises(
        ConfigError, match=r"dpo trains a policy; set preferences.loss=bradley_terry .*`vlrl dpo`"
    ):
        train_reward_model_once(policy, TrainConsole("test", 1), resume=False)
    with pytest.raises(ConfigError, match="trains a reward model, and `vlrl train` a policy"):
        rl_objective(scores)


def test_a_reward_model_refuses_what_it_does_not_read() -> None:
    with pytest.raises(ConfigError, match=r"rollout\.temperature=0\.7 has no effect"):
        make_config(preferences=REWARD_MODEL, rollout={"temperature": 0.7})
    with pytest.raises(ConfigError, match=r"algorithm\.kl_coef=0\.1 has no effect"):
        train_reward_model_once(
            make_config(algorithm={"kl_coef": 0.1}), TrainConsole("test", 1), resume=False
        )
    assert not make_config(preferences=REWARD_MODEL).has_reference


def test_a_score_is_read_behind_the_last_token_of_each_completion() -> None:
    """P = [1, 2, i], then the letters, the end 0 and the template's 1, after which the score is read."""
    [[batch]] = pack(
        groups_of(PAIRS[:1], **REWARD_MODEL), no_pixels, PackOptions.of(make_config(preferences={}))
    )
    assert batch.advantages.tolist() == [1, -1]
    assert batch.input_ids[batch.source_index].tolist() == [1, 1]
    before = [batch.input_ids[index - 1] for index in batch.source_index.tolist()]
    assert before == [0, 0]
    assert len(batch.input_ids) == 3 + len("good0") + 2 + len("bad0") + 2  # the prompt is there once


def test_the_reference_is_a_second_model_if_there_is_one() -> None:
    from vlrl.plan.memory import num_copies

    assert not make_config().has_reference
    assert make_config(algorithm={"kl_coef": 0.1}).has_reference
    assert num_copies(make_config(preferences={})) == 2
    assert num_copies(make_config(preferences={}, lora={"rank": 4})) == 1
    assert num_copies(make_config(preferences={"reference": "none"})) == 1
