"""Presets expand to keys that may be overridden, and combinations without a meaning are refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vlrl.config import Config, parse_config
from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.presets import PRESETS
from vlrl.errors import ConfigError

NEEDED = {"gdpo": ["algorithm.credit.options.rewards={accuracy: 1}"]}
"""What a preset cannot be used without."""


def config(*overrides: str, **sections: Any) -> Config:
    tree = {"model": {"path": "m"}, "data": {"train": "digit_sum"}, "rewards": "answer_exact", **sections}
    return parse_config(tree, overrides=overrides)


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_sets_its_keys_and_nothing_else(name: str) -> None:
    found = config(f"algorithm={name}", *NEEDED.get(name, [])).algorithm
    keys, plain = PRESETS[name].keys, config().algorithm
    for key in AlgorithmConfig.model_fields:
        if key in ("credit", "loss"):
            assert getattr(found, key).name == keys.get(key, getattr(plain, key).name)
        elif key == "critic":
            assert (found.critic is None) == (key not in keys)
        elif key != "preset":
            assert getattr(found, key) == keys.get(key, getattr(plain, key)), key


@pytest.mark.parametrize("name", PRESETS)
def test_what_is_shown_is_read_again_as_the_same(name: str) -> None:
    """A run's config.yaml has the preset and all keys."""
    found = config(f"algorithm={name}", *NEEDED.get(name, []))
    assert parse_config(found.model_dump(mode="json")) == found


def test_the_default_is_what_it_was_before_there_were_presets() -> None:
    shown = config().algorithm.model_dump(mode="json")
    assert shown["credit"] == {"name": "episode", "options": {}} and shown["preset"] is None
    assert shown["loss"] == {"name": "ppo", "options": {}}
    assert (shown["clip_low"], shown["clip_high"], shown["dual_clip"]) == (0.2, 0.28, 3.0)
    assert (shown["kl_coef"], shown["kl_estimator"], shown["normalize"]) == (0.0, "k3", "none")


def test_a_config_of_today_loads_no_framework() -> None:
    code = (
        "import sys; from vlrl.config import parse_config\n"
        "own = {'clip_low': 0.1, 'scale_by_std': False}\n"
        "parse_config({'model': {'path': 'm'}, 'data': {'train': 'x'}, 'algorithm': own})\n"
        "print('torch' in sys.modules)"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert child.stdout.split() == ["False"], child.stderr


def test_keys_beside_a_preset_override_it() -> None:
    found = config(algorithm={"preset": "gspo", "aggregation": "token", "loss": {"options": {"high": 0.01}}})
    assert found.algorithm.aggregation == "token"
    assert (found.algorithm.loss.name, found.algorithm.loss.options) == ("gspo", {"high": 0.01})
    other = config("algorithm=gspo", "algorithm.loss=ppo", "algorithm.clip_high=0.3").algorithm
    assert (other.loss.name, other.clip_high, other.aggregation) == ("ppo", 0.3, "sequence")


def test_overrides_go_into_what_was_given_by_name() -> None:
    found = config("algorithm.loss.options.high=0.01", algorithm="gspo").algorithm
    assert (found.preset, found.loss.options) == ("gspo", {"high": 0.01})
    assert config("algorithm.loss.options.low=0.1", algorithm={"loss": "gspo"}).algorithm.loss.name == "gspo"


def test_a_function_may_stand_for_its_name() -> None:
    def mine(trainer_logprobs: Any, anchor_logprobs: Any, advantages: Any) -> Any:
        return -advantages * trainer_logprobs, advantages > 9

    found = config(algorithm={"loss": mine}).algorithm.loss.name
    assert found.endswith(":mine")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ("algorithm=gspoo", "no preset is named 'gspoo'; did you mean 'gspo'?"),
        ("algorithm=zzz", "known: grpo, dr_grpo, dapo"),
        ("algorithm.loss=gspoo", "algorithm: loss: no loss is named 'gspoo'; did you mean 'gspo'?"),
        ("algorithm.credit=rlo", "no advantage is named 'rlo'; did you mean 'rloo'?"),
        ("algorithm=gspo algorithm.loss.options.hihg=1", "takes no option 'hihg'; .* did you mean 'high'?"),
        ("algorithm=gspo algorithm.clip_low=0.1",
         r"clip_low=0.1 has no effect with loss=gspo \(algorithm.preset=gspo\); .*, or set loss=ppo"),
        ("algorithm.loss={name: ppo, options: {clip_low: 0.3}}", "'clip_low' is a key beside this one"),
        ("algorithm=rloo algorithm.scale_by_std=false", "scale_by_std=False has no effect with credit=rloo"),
        ("algorithm=gdpo", "advantage 'gdpo' needs the option 'rewards'"),
        ("algorithm=gdpo algorithm.credit.options.rewards=[a,b]",
         r"advantage 'gdpo': its option rewards=\['a', 'b'\]: .*should be a valid (dictionary|mapping)"),
        ("algorithm=gdpo algorithm.credit.options.rewards={a: x}", r"rewards\['a'\]: .*a valid number"),
        ("algorithm=pass_at_k algorithm.credit.options.k=9",
         "algorithm.credit.options.k=9 is above rollout.group_size=8"),
        ("algorithm=rloo algorithm.num_minibatches=2", "num_minibatches=2 with loss=policy_gradient"),
        ("algorithm=rloo asynchronous.mode=async episodes.lockstep=false",
         "loss=policy_gradient has no ratio, and asynchronous.mode=async"),
        ("algorithm={preset: gspo, correction: {kind: dppo}}", "correction.kind=dppo is a loss itself"),
        ("algorithm.kl_estimator=k2", "kl_estimator=k2 has no effect with kl_coef=0"),
        ("algorithm.kl_coef=0.1 algorithm.kl_estimator=k9", "no regularizer is named 'k9'; did you mean"),
        ("rollout.group_size=1", "rollout.group_size=1 with algorithm.credit=episode, whose baseline is the"),
        ("rollout.group_size=1 algorithm=rloo", "group_size=1 with algorithm.credit=rloo, .*credit=remax"),
        ("rollout.group_size=1 preferences.beta=0.2", "rollout.group_size=1 with preferences"),
        ("algorithm=remax preferences.beta=0.2", "algorithm.preset=remax has no effect with preferences"),
        ("algorithm=remax episodes.branching.num_branches=2", "credit=remax does not support trees"),
        ("algorithm=remax algorithm.discount=0.9", "discount=0.9 has no effect with credit=remax"),
        ("algorithm=remax algorithm.credit.options.greedy=1", "advantage 'remax' takes no option 'greedy'"),
        ("algorithm.credit.options={a: 1}", "missing key 'algorithm.credit.name'"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused_with_its_keys(overrides: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(*re.split(r" (?=[a-z]+[.=])", overrides))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mine = 3", "is a int, not a function"),
        ("def mine(a, b):\n    pass", "must take trainer_logprobs, anchor_logprobs, advantages first"),
        ("def mine(a, b, c, *, knob):\n    pass", "needs the option 'knob'"),
        ("import nothing_of_that_name", "No module named"),
    ],
)
def test_a_loss_of_a_file_is_looked_at_when_the_config_is_read(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises(ConfigError, match=words):
        config(f"algorithm.loss={tmp_path}/mine.py:mine")


def test_a_baseline_outside_the_group_needs_no_group(tmp_path: Path) -> None:
    """A function in a file that asks for the greedy episode by name has one, too."""
    found = config("algorithm=remax", "rollout.group_size=1")
    assert found.rollout.group_size == 1 and found.algorithm.has_greedy_baseline
    assert not config("algorithm=rloo").algorithm.has_greedy_baseline
    (tmp_path / "mine.py").write_text("def mine(group, *, greedy):\n    return [0.0 for _ in group]\n")
    mine = config(f"algorithm.credit={tmp_path}/mine.py:mine", "rollout.group_size=1")
    assert mine.algorithm.has_greedy_baseline


def test_an_older_token_has_a_correction_where_the_loss_has_no_ratio() -> None:
    overrides = ["algorithm=rloo", "asynchronous.mode=async", "episodes.lockstep=false"]
    assert config(*overrides, "algorithm.correction.kind=truncated").algorithm.loss.name == "policy_gradient"
