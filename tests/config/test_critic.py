"""algorithm.critic: its defaults, what it asks for, and what it does not go with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vlrl.config import Config, parse_config
from vlrl.errors import ConfigError
from vlrl.sft import without_other_models

VALUES = '''
def advantages(rewards, values, *, share=0.5):
    """A stranger's."""
    return share * (rewards - values)
'''


def config(*overrides: str, **sections: Any) -> Config:
    tree = {"model": {"path": "m"}, "data": {"train": "digit_sum"}, "algorithm": "ppo", **sections}
    return parse_config(tree, overrides=overrides)


def test_the_preset_has_a_critic_and_its_keys_can_be_set() -> None:
    algorithm = config().algorithm
    assert (algorithm.credit.name, algorithm.normalize, algorithm.dual_clip) == ("gae", "batch", None)
    assert algorithm.critic is not None and algorithm.trains_all_groups
    assert (algorithm.critic.path, algorithm.critic.level, algorithm.critic.warmup_steps) == (
        None,
        "token",
        0,
    )
    found = config("algorithm.critic.lr=1e-4", "algorithm.credit.options.lam=1", "algorithm.discount=0.9")
    assert found.algorithm.critic is not None and found.algorithm.critic.lr == 1e-4
    assert found.algorithm.credit.options == {"lam": 1}
    assert config(algorithm={}).algorithm.critic is None


def test_a_folder_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    critic = config("algorithm.critic.path=./runs/best").algorithm.critic
    assert critic is not None and critic.path == f"{tmp_path}/runs/best"


def test_a_group_may_be_of_one() -> None:
    assert config("rollout.group_size=1").rollout.group_size == 1


def test_a_strangers_function_takes_values_by_name(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(VALUES)
    name = f"{tmp_path}/mine.py:advantages"
    found = config(algorithm={"critic": {}, "credit": {"name": name, "options": {"share": 0.1}}})
    assert found.algorithm.changes_advantages
    with pytest.raises(ConfigError, match="needs the values of a critic"):
        config(algorithm={"credit": name})


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["algorithm={critic: {}}"], "critic has no effect with credit=episode.* set credit=gae, or"),
        (["algorithm={critic: {}, credit: rloo}"], "critic has no effect with credit=rloo"),
        (["algorithm={credit: gae}"], "credit=gae needs the values of a critic; set critic={}"),
        (["algorithm.critic=null"], "credit=gae needs the values of a critic"),
        (["algorithm.critic.num_updates=1"],
         "clip=0.2 has no effect with num_updates=1.*set clip=null, or num_updates=2"),
        (["algorithm.critic.level=episode"], "algorithm.critic.level: Input should be 'token' or 'turn'"),
        (["algorithm.critic.rate=1"], "unknown key 'algorithm.critic.rate'"),
        (["algorithm.scale_by_std=false"], "scale_by_std=False has no effect with credit=gae"),
        (["algorithm.credit.options.lam=1.5"], "'gae': lam=1.5 is not between 0 and 1"),
        (["algorithm.credit.options.lambda=1"], "lambda"),
        (["algorithm.masks=[truncated]"], "masks=.*truncated.* with critic.*leave masks out"),
        (["algorithm.num_minibatches=2", "rollout.prompts_per_step=4"],
         "num_minibatches=2 with critic and normalize=batch.*num_minibatches=1, or normalize=none"),
        (["num_steps=5", "algorithm.critic.warmup_steps=5"],
         "algorithm.critic.warmup_steps=5 with num_steps=5: the policy would not be trained"),
        (["trainer.offload_dir=/tmp/x", "trainer.offload_optimizer=true"],
         "trainer.offload_dir=/tmp/x with algorithm.critic.*leave offload_dir out"),
        (["rollout.group_size=1", "batch.filters=[{name: zero_variance}]"],
         "batch.filters=zero_variance with rollout.group_size=1 drops every group"),
        (["algorithm=grpo", "rollout.group_size=1"],
         "rollout.group_size=1 with algorithm.credit=episode.*group_size=2 or more, or .*algorithm=ppo"),
        (["rollout.group_size=8", "episodes.branching.num_branches=2"],
         "algorithm.credit=gae does not support trees"),
        (["algorithm={}", "algorithm.credit=gae", "algorithm.critic={}", "preferences={}"],
         "has no effect with preferences"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_remedy(overrides: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(*overrides)


def test_minibatches_are_trained_without_a_common_scale() -> None:
    found = config(
        "algorithm.num_minibatches=2", "algorithm.normalize=none", "rollout.prompts_per_step=4"
    ).algorithm
    assert found.changes_advantages and found.surveys


def test_supervised_training_holds_none() -> None:
    assert without_other_models(config()).algorithm.critic is None
