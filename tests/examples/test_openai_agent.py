"""examples/openai_agent.py and docs/agents.md do what they say, with a scripted policy."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import ScriptedPolicy, make_context, open_tiny
from documents import blocks, follow

from vlrl.config import Config, load_config
from vlrl.data import open_dataset
from vlrl.rollout.groups import RolloutResult, rollout_groups
from vlrl.rollout.session import Session
from vlrl.types import Sample, Sampling

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


def play(
    samples: list[Sample], policy: ScriptedPolicy, processor: Any, config: Config, size: int = 2
) -> RolloutResult:
    async def run() -> RolloutResult:
        context = make_context(policy, processor, config)
        try:
            return await rollout_groups(samples, context, seed_path=(0, 0), group_size=size)
        finally:
            await context.endpoint.close()

    return asyncio.run(run())


def call(count: int) -> str:
    return f'<tool_call>\n{{"name": "check", "arguments": {{"count": {count}}}}}\n</tool_call>'


def test_the_examples_agent_with_a_policy_that_uses_its_tool(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its config's rows, halving the range with the tool until the count is right."""
    monkeypatch.chdir(ROOT)
    config, processor = load_config("configs/openai_agent.yaml"), open_tiny(tiny_model)
    rows = open_dataset(config.data.train[0], "data.train")
    samples = [processor.sample(rows[index]) for index in range(4)]

    def answer(session: Session, sampling: Sampling) -> list[int]:
        low, high = 1, 9
        middle = 5
        for said in session.conversation:
            text = "".join(part.get("text", "") for part in said.message["content"])
            if said.message["role"] == "tool":
                low, high = {"too low": (middle + 1, high), "too high": (low, middle - 1)}.get(
                    text, (middle,) * 2
                )
                middle = (low + high) // 2
        done = low == high or len(session.conversation) > 6
        ids: list[int] = processor.encode_target(f"There are {middle}" if done else call(middle)).tolist()
        return ids

    generated = play(samples, ScriptedPolicy(answer), processor, config)
    assert not generated.counts
    for group in generated.groups:
        for trajectory in group.trajectories:
            assert trajectory.outcome == "ok"
            count = random.Random(trajectory.sample.env.seed).randint(1, 9)  # type: ignore[union-attr]
            success = trajectory.completion == f"There are {count}"
            assert trajectory.info["success"] == success
            assert trajectory.episode_return == pytest.approx(success - 0.1 * (len(trajectory.turns) - 1))
            [ledger] = trajectory.ledgers
            assert len(ledger.media) == 1
            generated_ids = [processor.encode_target(turn.text).tolist() for turn in ledger.turns]
            assert [token for ids in generated_ids for token in ids] == trajectory.action_ids
    assert any(t.info["success"] for g in generated.groups for t in g.trajectories)
    assert any(t.info["num_checks"] for g in generated.groups for t in g.trajectories)


def test_the_example_as_a_program(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    config, processor = load_config("configs/openai_agent.yaml"), open_tiny(tiny_model)
    sample = processor.sample(open_dataset(config.data.train[0], "data.train")[0])
    assert sample.env is not None
    program = {"command": [sys.executable, "examples/openai_agent.py"]}
    sample = replace(sample, env=replace(sample.env, options=program))
    policy = ScriptedPolicy(lambda *_: processor.encode_target("There are 4.").tolist())
    [group] = play([sample], policy, processor, config, size=1).groups
    count = random.Random(0).randint(1, 9)
    assert group.trajectories[0].info == {"success": float(count == 4), "num_checks": 0.0}


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The page's files."""
    for language, mark, text in blocks(PAGE):
        if language != "console":
            (tmp_path / mark).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_the_pages_agents(written: Path, tiny_model: Path) -> None:
    config = load_config("agent.yaml")
    processor = open_tiny(tiny_model)
    rows = open_dataset(config.data.train[0], "data.train")
    policy = ScriptedPolicy(lambda *_: processor.encode_target("5").tolist())
    generated = play([processor.sample(rows[i]) for i in range(2)], policy, processor, config)
    assert not generated.counts
    assert [t.episode_return for g in generated.groups for t in g.trajectories] == [1.0] * 4
    assert [len(t.turns) for g in generated.groups for t in g.trajectories] == [2] * 4


def test_the_pages_rows_are_what_the_table_says() -> None:
    assert {language for language, _, _ in blocks(PAGE)} == {"python", "json", "yaml", "console"}
    options = [json.loads(line)["env"]["options"] for line in PAGE.splitlines() if line.startswith('{"id"')]
    assert [set(each) for each in options] == [{"agent"}, {"command"}]


@pytest.mark.slow
def test_the_page_with_the_real_engine(written: Path) -> None:
    assert follow(PAGE, written, dict(os.environ), slow=True) == 2
