"""Whoever knows another project's options, or the short way to write one, is understood."""

from __future__ import annotations

from typing import Any

import pytest

from vlrl.config import field_paths, parse_config
from vlrl.config.names import ALIASES, nearest_key
from vlrl.errors import ConfigError

KNOWN = list(field_paths())


def tree(**more: Any) -> dict[str, Any]:
    return {"model": {"path": "m"}, "data": {"train": {"name": "digit_sum"}}, **more}


def refusal(*overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(tree(), overrides=overrides)
    return str(caught.value)


@pytest.mark.parametrize("alias", ALIASES)
def test_an_alias_leads_to_an_option_and_is_none_itself(alias: str) -> None:
    assert ALIASES[alias] in KNOWN
    assert alias not in {key.rsplit(".", 1)[-1] for key in KNOWN}, f"{alias} is an option: take it out"


@pytest.mark.parametrize(
    ("there", "here"),
    [
        ("num_generations", "rollout.group_size"),
        ("n", "rollout.group_size"),
        ("learning_rate", "optim.lr"),
        ("max_completion_length", "rollout.max_tokens"),
        ("optim.learning_rate", "optim.lr"),
        ("trainer.n_gpus_per_node", "trainer.num_ranks"),
        ("num_generation", "rollout.group_size"),  # a slip in another's word
        ("rollout.group_sise", "rollout.group_size"),
    ],
)
def test_the_message_names_our_option(there: str, here: str) -> None:
    assert f"unknown key {there!r}; did you mean {here!r}?" in refusal(f"{there}=3")


def test_another_projects_section_is_answered_leaf_by_leaf() -> None:
    words = refusal("actor_rollout_ref.rollout.n=8", "actor_rollout_ref.actor.clip_ratio_high=0.3")
    assert "'actor_rollout_ref.rollout.n'; did you mean 'rollout.group_size'" in words
    assert "'actor_rollout_ref.actor.clip_ratio_high'; did you mean 'algorithm.clip_high'" in words


def test_what_is_like_nothing_points_to_the_list() -> None:
    assert nearest_key("zzzzqq", KNOWN) is None
    assert "docs/reference/options.md" in refusal("zzzzqq=1")


def test_a_source_may_be_its_name() -> None:
    config = parse_config(tree(), overrides=["data.train=x.jsonl", "data.eval=[a.jsonl, b.jsonl]"])
    assert [source.name for source in config.data.train] == ["x.jsonl"]
    assert [source.name for source in config.data.eval] == ["a.jsonl", "b.jsonl"]


def test_a_reward_may_be_its_name() -> None:
    for given, names in (
        ("numeric", ["numeric"]),
        ("./my.py:score", ["./my.py:score"]),
        ("[numeric, {name: think_answer_format, weight: 0.2}]", ["numeric", "think_answer_format"]),
        ("{name: math}", ["math"]),
    ):
        config = parse_config(tree(), overrides=[f"rewards={given}"])
        assert [reward.name for reward in config.rewards] == names
    source = parse_config(tree(), overrides=["data.train.rewards=math"]).data.train[0]
    assert [reward.name for reward in source.rewards] == ["math"]


def test_parts_of_a_name_alone_can_be_set() -> None:
    config = parse_config(
        tree(),
        overrides=[
            *("data.train=x.jsonl", "data.train.limit=5"),
            *("rewards=[numeric, math]", "rewards.1.weight=2"),
        ],
    )
    assert (config.data.train[0].name, config.data.train[0].limit) == ("x.jsonl", 5)
    assert [reward.weight for reward in config.rewards] == [1.0, 2.0]
    one = parse_config(tree(rewards="math"), overrides=["rewards.weight=3", "rewards.options.part=whole"])
    assert (one.rewards[0].weight, one.rewards[0].options) == (3.0, {"part": "whole"})
    yaml_list = parse_config(tree(data={"train": ["x.jsonl", {"name": "y.jsonl", "weight": 2}]}))
    assert [(source.name, source.weight) for source in yaml_list.data.train] == [
        ("x.jsonl", 1),
        ("y.jsonl", 2),
    ]


def test_what_is_no_name_is_still_refused() -> None:
    assert "rewards" in refusal("rewards=3")
    assert "data.train" in refusal("data.train=3")
