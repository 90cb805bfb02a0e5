"""The page itself, and what tickets become: the seeds of a run that has fewer rows than prompts in a step."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import ScriptedPolicy, TextProcessor, make_config, make_context, make_sample

import vlrl.grpo
from vlrl.data import Prepared, SampleStream
from vlrl.grpo import generate_groups
from vlrl.rollout.buffer import State, Ticket
from vlrl.rollout.outcome import TicketOutcome
from vlrl.run.players.player import Player
from vlrl.scoring.compose import ComposedReward
from vlrl.types import Row

GROUP_SIZE = 3
PAGE = Path(vlrl.grpo.__file__)
MAX_PAGE_LINES = 150
VERBS = {
    "sample": "player.samples",
    "roll out": "rollout_groups",
    "score": "score_groups",
    "advantage": "assign_credit",
    "pack": "run.rollouts.pack",
    "step": "run.trainer.step",
    "sync": "run.turns.update",
}
"""Verbs of the page's title → what does each of them, in the order in which the page is read."""


class Rows:
    """Two rows, one of which has the id of a row of another source."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Row:
        return {"id": f"r{index}"}


def play(rounds: Sequence[Sequence[int]], *, prompts_per_step: int = 4) -> dict[int, list[tuple[str, int]]]:
    """The (sample, seed) of what was asked, by position, for tickets that are generated in these rounds."""
    config = make_config(rollout={"prompts_per_step": prompts_per_step, "group_size": GROUP_SIZE})
    policy = ScriptedPolicy(lambda session, sampling: [65])
    stream = SampleStream(
        [Rows()],
        lambda row, source: Prepared(make_sample([1, 2], id=row["id"], answer="A")),
        batch_size=prompts_per_step,
        seed=0,
    )
    reward = ComposedReward(config.rewards, inline=True)
    context = make_context(policy, TextProcessor(), config)
    player = Player(config, stream, context, reward, masks=())
    found: dict[int, list[tuple[str, int]]] = {}
    try:
        for positions in rounds:
            tickets: list[Ticket[TicketOutcome]] = [Ticket(p, State.RUNNING, 0) for p in positions]
            policy.asked.clear()
            generated = asyncio.run(generate_groups(player, tickets))
            assert [len(outcome.kept) for outcome in generated.outcomes] == [1] * len(tickets)
            asked = [(session.sample.id, sampling.seed) for session, sampling in policy.asked]
            for number, position in enumerate(positions):
                found[position] = asked[number * GROUP_SIZE : (number + 1) * GROUP_SIZE]
    finally:
        stream.close()
    return found


def test_training_on_fewer_rows_than_prompts_in_a_step_samples_each_of_them_afresh() -> None:
    asked = [each for of_one in play([range(4), range(4, 8)]).values() for each in of_one]
    assert {sample for sample, _ in asked} == {"r0", "r1"}
    assert len({seed for _, seed in asked}) == len(asked) == 8 * GROUP_SIZE


@pytest.mark.parametrize(
    "rounds",
    [
        [[7], [2], [0], [1], [3], [6], [5], [4]],  # async mode: each ticket for itself, whichever is first
        [range(4), range(4, 8), [5], [2]],  # stale or lost ones are generated again
        [range(4, 8), [0, 3], [1, 2]],  # a resumed run, a refilled batch
    ],
)
def test_a_position_has_the_same_seeds_whenever_and_with_whatever_it_is_generated(rounds: Any) -> None:
    assert dict(sorted(play(rounds).items())) == play([range(4), range(4, 8)])


def test_the_algorithm_is_one_page() -> None:
    """Every verb of the title is named once, in the title's order."""
    source = PAGE.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= MAX_PAGE_LINES
    tree = ast.parse(source)
    title = (ast.get_docstring(tree) or "").splitlines()[0]
    assert title == f"GRPO on one page: {' → '.join(VERBS)}."
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name | ast.Attribute)]
    named = sorted((node.lineno, ast.unparse(node)) for node in names)
    assert [name for _, name in named if name in VERBS.values()] == list(VERBS.values())
