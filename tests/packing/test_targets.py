"""Which action a trained token is of, and where in it, for structured outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from builders import make_config, make_generation, make_sample, no_pixels, text_prompt
from hypothesis import given, settings
from hypothesis import strategies as st

from vlrl.algorithm.credit import group_with_advantages
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.session import Session
from vlrl.types import Group, Score

TURNS = st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=1, max_size=4)
"""Tokens of what is seen, and of the action, of each turn."""


FORMS = ("", '{"regex": "a"}', '{"choice": ["b"]}')


def group_of(
    episodes: list[list[tuple[int, int]]], forks: bool, seed: int, forms: tuple[str, ...] = FORMS
) -> Group:
    """Episodes that begin alike, each of a form; with `forks`, each turn but the first is its own ledger."""
    rng, trajectories = np.random.default_rng(seed), []
    for index, turns in enumerate(episodes):
        session = Session(make_sample([1, 2], form=forms[index % len(forms)]), index)
        for number, (seen, said) in enumerate(turns):
            if number:
                prompt = text_prompt(rng.integers(0, 3, seen).tolist(), session.next_position)
                if forks:
                    session.fork(text_prompt(prompt.token_ids.tolist()), (), ())
                else:
                    session.append_observation(prompt, ())
            session.append_action(make_generation(rng.integers(0, 3, said).tolist()))
        trajectory = session.trajectory("", "ok", 0.0)
        trajectory.score = Score(0.0, {})
        trajectories.append(trajectory)
    return group_with_advantages(trajectories, [1.0] * len(episodes))


@settings(deadline=None)
@given(
    st.lists(st.lists(TURNS, min_size=1, max_size=4), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([1, 12, 1000]),
    st.integers(1, 3),
)
def test_an_action_and_a_place_lead_to_the_trained_token(
    specs: list[Any], forks: bool, max_tokens: int, shared_by: int
) -> None:
    """Few different tokens, so that branches share trained ones; some turns are left out of the loss."""
    groups = [group_of(spec, forks, seed) for seed, spec in enumerate(specs)]
    for group in groups:
        for credit in group.credits:
            for trained in credit.trained:
                trained[: len(trained) // 2] = False
    options = PackOptions(
        num_ranks=2 * shared_by,
        max_tokens=max_tokens,
        max_completion_tokens=8,
        sequence_parallel=shared_by,
        restricts=True,
    )
    actions = {
        (tuple(ledger.token_ids[slice(*turn.action)]), turn.form)
        for group in groups
        for trajectory in group.trajectories
        for ledger in trajectory.ledgers
        for turn in ledger.turns
    }
    found, num_without = [], 0
    for of_rank in pack(groups, no_pixels, options):
        for batch in of_rank:
            if batch.action_places is None:
                num_without += len(batch.target_ids)
                continue
            assert len(batch.forms) == len(set(batch.forms)), "each form once, however many actions have it"
            for (number, place), target in zip(batch.action_places, batch.target_ids, strict=True):
                assert batch.actions[number][place] == target
                found.append((tuple(batch.actions[number]), batch.forms[batch.action_forms[number]]))
    assert set(found) <= actions
    num_trained = sum(credit.num_trained for group in groups for credit in group.credits)
    assert len(found) + num_without == num_trained
    assert len(found) >= sum(
        credit.num_trained
        for group in groups
        for trajectory, credit in zip(group.trajectories, group.credits, strict=True)
        if trajectory.sample.form
    )


@pytest.mark.parametrize(("forms", "restricts"), [(("",), True), (FORMS[1:], False)])
def test_where_nothing_is_restricted_nothing_is_said(forms: tuple[str, ...], restricts: bool) -> None:
    options = PackOptions(1, 100, 8, restricts=restricts)
    [[batch]] = pack([group_of([[(1, 2)]], False, 0, forms)], no_pixels, options)
    assert batch.action_places is None and batch.actions == () and batch.forms == ()


def test_supervised_tokens_are_not_restricted() -> None:
    config = make_config()
    assert PackOptions.of(config).restricts and not PackOptions.of(config, generated=False).restricts
