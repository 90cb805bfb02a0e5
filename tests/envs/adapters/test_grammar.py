"""Grammars of action spaces: every action has a text that gives it back, and no text does harm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.envs.adapters.gymnasium.grammar import Json, Numbers, Words, grammar_of
from vlrl.envs.adapters.gymnasium.spaces import NoAction
from vlrl.errors import ConfigError

SPACES: dict[str, Any] = {
    "discrete": spaces.Discrete(5),
    "discrete from -2": spaces.Discrete(4, start=-2),
    "box": spaces.Box(-1.0, 1.0, (3,), np.float32),
    "box64": spaces.Box(np.array([0.1, -1e-9]), np.array([0.3, 1e9]), dtype=np.float64),
    "box without bounds": spaces.Box(-np.inf, np.inf, (2, 2), np.float32),
    "box16": spaces.Box(-3, 3, (2,), np.float16),
    "scalar box": spaces.Box(-2.0, 2.0, (), np.float32),
    "whole box": spaces.Box(0, 255, (2, 3), np.uint8),
    "long box": spaces.Box(0, 2**64 - 1, (2,), np.uint64),
    "multidiscrete": spaces.MultiDiscrete([3, 4, 2]),
    "multidiscrete from": spaces.MultiDiscrete([3, 4], start=[-1, 10]),
    "multibinary": spaces.MultiBinary([2, 2]),
    "text": spaces.Text(8),
    "dict": spaces.Dict({"b": spaces.Discrete(3), "a": spaces.Box(0, 1, (2,), np.float32)}),
    "tuple": spaces.Tuple([spaces.Discrete(2), spaces.Dict({"x": spaces.MultiBinary(2)}), spaces.Text(3)]),
}


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype


def grammars() -> list[Any]:
    own = [pytest.param(grammar_of(space, None, "t"), id=name) for name, space in SPACES.items()]
    as_json = [
        pytest.param(grammar_of(space, {"type": "json"}, "t"), id=f"{name} as JSON")
        for name, space in SPACES.items()
        if name != "long box"  # JSON's numbers have 53 bits here
    ]
    named = {"left": [-1.0, 0.0, 0.0], "hard right": [1.0, 0.5, 0.0]}
    return [*own, *as_json, pytest.param(grammar_of(SPACES["box"], named, "t"), id="words for a box")]


@pytest.mark.parametrize("grammar", grammars())
def test_every_action_round_trips_through_its_text(grammar: Any) -> None:
    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32))
    def check(seed: int) -> None:
        action = grammar.sample(np.random.default_rng(seed))
        assert same(grammar.parse(grammar.write(action)), action)

    check()


@pytest.mark.parametrize("grammar", grammars())
def test_a_text_is_an_action_of_the_space_or_is_refused(grammar: Any) -> None:
    near = st.lists(st.sampled_from([*'0123456789.-+eE,[]{}": ', "1e400", "NaN", "left", '"a"', "²", "\n"]))
    # What is almost an action: pieces of true ones cut up and joined again.
    true = st.integers(0, 99).map(lambda seed: grammar.write(grammar.sample(np.random.default_rng(seed))))
    mutated = st.builds(lambda a, b, i, j: a[:i] + b[j:], true, true, st.integers(0, 30), st.integers(0, 30))

    @settings(max_examples=60, deadline=None)
    @given(st.one_of(st.text(), near.map("".join), mutated))
    def check(text: str) -> None:
        try:
            action = grammar.parse(text)
        except NoAction as error:
            assert 0 < len(str(error)) < 2000
        else:
            assert grammar.space.contains(action)

    check()


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "9" * 20_000, '{"a":' * 5000, "1 " * 9000, "1e" + "9" * 5000]
)
def test_hostile_texts_are_refused(text: str) -> None:
    for name in ("box", "whole box", "dict", "discrete", "long box", "tuple"):
        for actions in (None, {"type": "json"}):
            with pytest.raises(NoAction):
                grammar_of(SPACES[name], actions, "t").parse(text)


def test_the_space_says_which_grammar_is_its_own() -> None:
    kinds = {name: type(grammar_of(space, None, "t")) for name, space in SPACES.items()}
    assert kinds["discrete"] is Words
    assert {kinds[n] for n in ("box", "scalar box", "whole box", "multidiscrete", "multibinary")} == {Numbers}
    assert {kinds[n] for n in ("dict", "tuple", "text")} == {Json}


def test_words_by_list_and_by_mapping() -> None:
    listed = grammar_of(spaces.Discrete(3, start=1), ["Left", "stay", "turn  right"], "t")
    assert [int(listed.parse(word)) for word in ("left", " LEFT ", "stay", "Turn\n right")] == [1, 1, 2, 3]
    assert listed.describe() == "one of: left, stay, turn right"
    some = grammar_of(SPACES["dict"], {"go": {"a": [0.5, 1], "b": 2}}, "t")
    assert some.parse("go")["b"] == 2
    assert {int(listed.sample(np.random.default_rng(seed))) for seed in range(30)} == {1, 2, 3}


def test_values_at_the_bounds_and_beyond() -> None:
    box = grammar_of(SPACES["box"], None, "t")
    assert box.parse("1, -1 .5").tolist() == [1.0, -1.0, 0.5]
    for text in ("1.0001 0 0", "0 0", "0 0 0 0", "nan 0 0", "0x1 0 0", "1_0 0 0", "[0, 0, 0]", "", "٣ 0 0"):
        with pytest.raises(NoAction):
            box.parse(text)
    whole = grammar_of(SPACES["multidiscrete"], None, "t")
    assert whole.parse("2 3 1").tolist() == [2, 3, 1]
    for text in ("2 4 1", "-1 0 0", "0.5 0 0"):
        with pytest.raises(NoAction):
            whole.parse(text)


@pytest.mark.parametrize(
    ("name", "own", "as_json"),
    [
        ("discrete from -2", "a whole number from -2 to 1", "a whole number from -2 to 1"),
        ("box", "3 numbers from -1.0 to 1.0, separated by spaces", "a list of 3 numbers from -1.0 to 1.0"),
        ("scalar box", "a number from -2.0 to 2.0", "a number from -2.0 to 2.0"),
        (
            "multidiscrete from",
            "2 whole numbers, least [-1, 10], greatest [1, 13], separated by spaces",
            "a list of 2 whole numbers, least [-1, 10], greatest [1, 13]",
        ),
        (
            "multibinary",
            "4 whole numbers from 0 to 1, separated by spaces",
            "a list of 2 lists of 2 whole numbers from 0 to 1",
        ),
    ],
)
def test_a_model_is_told_what_an_action_is(name: str, own: str, as_json: str) -> None:
    assert grammar_of(SPACES[name], None, "t").describe() == own
    assert grammar_of(SPACES[name], {"type": "json"}, "t").describe() == f"JSON, {as_json}"


def test_low_and_high_narrow_a_box() -> None:
    wide = SPACES["box without bounds"]
    grammar = grammar_of(wide, {"type": "floats", "low": -2, "high": [[2, 2], [3, 4]]}, "t")
    assert grammar.parse("2 2 3 4").tolist() == [[2, 2], [3, 4]]
    with pytest.raises(NoAction):
        grammar.parse("2 2 3 4.5")
    samples = np.stack([grammar.sample(np.random.default_rng(seed)) for seed in range(50)])
    assert samples.min() >= -2
    assert (samples <= np.array([[2, 2], [3, 4]])).all()


def test_sampling_leaves_the_environment_s_space_alone() -> None:
    space = spaces.Box(-1, 1, (2,), np.float32, seed=3)
    twin = spaces.Box(-1, 1, (2,), np.float32, seed=3)
    grammar_of(space, None, "t").sample(np.random.default_rng(0))
    assert np.array_equal(space.sample(), twin.sample())


@pytest.mark.parametrize(
    ("name", "actions", "says"),
    [
        ("discrete", ["a", "b"], "a list names every action"),
        ("box", ["a", "b", "c"], "a list names every action"),
        ("discrete", {"a": 7}, "'a': 7 is not an action of Discrete"),
        ("discrete", {"a": 1, " A": 2}, "stands twice"),
        ("discrete", {True: 1}, "quote words"),
        ("discrete", {}, "at least one word"),
        ("discrete", {"type": "floats"}, "give type: json"),
        ("box", {"type": "float"}, "type: floats or json"),
        ("box", {"type": "floats", "max": 2}, "low and high if wanted"),
        ("box", {"type": "floats", "low": -3}, "is not within"),
        ("box", {"type": "floats", "low": [0, 0]}, "must be numbers of shape"),
        ("discrete", {"type": "json", "low": 1}, "low and high narrow a Box"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(name: str, actions: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        grammar_of(SPACES[name], actions, "gymnasium")


def test_a_space_without_a_text_form_is_refused() -> None:
    space = spaces.Sequence(spaces.Discrete(2))
    for actions in (None, {"type": "json"}):
        with pytest.raises(ConfigError, match="has no text form"):
            grammar_of(space, actions, "gymnasium")
