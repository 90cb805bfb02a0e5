"""The section of several policies: what it says of agents, and what it refuses by name."""

from __future__ import annotations

from typing import Any

import pytest
from builders import make_config

from vlrl.config.learning.policies import (
    number_of_agent,
    policy_of_agent,
    require_one_policy,
    untrained_agents,
)
from vlrl.errors import ConfigError

POLICIES: dict[str, Any] = {
    "giver": {"agents": ["giver"]},
    "others": {"agents": ["guesser", "judge"]},
    "older": {"agents": ["second"], "copies": "giver", "every": 20},
}
LORA = {"sync": "adapter"}


def test_every_agent_has_the_policy_that_names_it() -> None:
    config = make_config(lora=LORA, policies=POLICIES)
    assert policy_of_agent(config) == {
        "giver": "giver",
        "guesser": "others",
        "judge": "others",
        "second": "older",
    }
    assert number_of_agent(config) == {"giver": 0, "guesser": 1, "judge": 1, "second": 2}
    assert untrained_agents(config) == {"second"}


def test_without_the_section_nobody_is_told_apart() -> None:
    config = make_config()
    assert not config.policies
    assert not policy_of_agent(config)
    assert not number_of_agent(config)
    assert not untrained_agents(config)


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        ({"Giver": {"agents": ["a"]}}, r"policies\.Giver: a policy's name is lower-case"),
        ({"default": {"agents": ["a"]}}, r"policies\.default: a policy's name"),
        (
            {"a": {"agents": ["x"]}, "b": {"agents": ["x"]}},
            r"policies\.b\.agents and policies\.a\.agents",
        ),
        ({"a": {"agents": []}}, r"policies\.a\.agents"),
        ({"a": {"agents": ["x"], "every": 3}}, "every=3 has no effect without copies"),
        (
            {"a": {"agents": ["x"]}, "b": {"agents": ["y"], "copies": "c"}},
            r"copies=c is no trained policy; .* is a",
        ),
        ({"a": {"agents": ["x"], "copies": "a"}}, "copies=a is no trained policy; there is none"),
    ],
)
def test_a_section_that_contradicts_itself_is_refused(policies: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_config(lora=LORA, policies=policies)


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"lora": None}, "the config has no lora section; set lora.sync=adapter"),
        ({"lora": {"sync": "merged"}}, r"the config has lora\.sync=merged; set lora\.sync=adapter"),
        ({"lora": {"sync": "adapter", "targets": ["projector"]}}, r"lora\.targets=projector with policies="),
        ({"lora": {"sync": "adapter", "dora": True}}, r"lora\.dora with policies=.* set lora\.dora=false"),
        ({"preferences": {}}, "preferences is computed over .* set preferences=null, or remove policies"),
        ({"algorithm": "ppo"}, r"algorithm\.critic is computed over the tokens of all policies together"),
        ({"algorithm": {"selections": ["top_entropy"]}}, r"set algorithm\.selections=\[\]"),
        ({"algorithm": {"kl_coef": 0.1, "kl_adaptive": {"target": 0.1}}}, r"set algorithm\.kl_adaptive=null"),
        ({"algorithm": {"entropy_adaptive": {"target": 0.1}}}, r"set algorithm\.entropy_adaptive=null"),
        (
            {"algorithm": {"kl_coef": 0.1, "kl_in": "reward", "normalize": "batch"}},
            r"algorithm\.normalize with kl_in=reward is .* set algorithm\.normalize=none",
        ),
    ],
)
def test_what_does_not_go_with_several_policies_is_refused(sections: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        make_config(**{"lora": LORA, "policies": POLICIES, **sections})


def test_a_command_of_one_policy_says_so() -> None:
    require_one_policy(make_config(), "vlrl eval")
    with pytest.raises(ConfigError, match=r"`vlrl eval` knows one policy.* remove the section"):
        require_one_policy(make_config(lora=LORA, policies=POLICIES), "vlrl eval")
