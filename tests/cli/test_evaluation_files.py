"""An evaluation is kept whole: every answer, a line a sample, the numbers, and a page of them."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Sequence
from pathlib import Path

from builders import ScriptedPolicy, TextProcessor, in_process, make_config, make_context, make_sample

from vlrl.cli.evaluation_files import write_evaluation
from vlrl.evaluate import Evaluation, evaluate
from vlrl.scoring.compose import ComposedReward
from vlrl.tracking.rollouts.read import read_rollouts
from vlrl.viewer.pages.report import write_rollout_report


class SpellingProcessor(TextProcessor):
    """A character a token, told one by one."""

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        return [chr(token) for token in token_ids]


def evaluated(*answers: str) -> Evaluation:
    """Evaluation of samples s0, s1 and so on, whose right answer is 4."""
    samples = [make_sample([1, 2], id=f"s{n}", answer="4") for n in range(len(answers))]
    spoken = {f"s{n}": f"<think>.</think><answer>{answer}</answer>" for n, answer in enumerate(answers)}
    policy = ScriptedPolicy(lambda session, sampling: [ord(c) for c in spoken[session.sample.id]])
    config = make_config(rewards="answer_normalized")
    with ComposedReward(config.rewards, inline=True) as reward:
        return asyncio.run(
            evaluate(
                samples, in_process(make_context(policy, TextProcessor(), config), reward), reward, config
            )
        )


def test_every_answer_is_kept_with_its_reward(tmp_path: Path) -> None:
    result = evaluated("4", "5")
    folder = tmp_path / "new" / "eval"
    path = write_evaluation(folder, result, SpellingProcessor(), result.summary())
    records = read_rollouts(path)
    assert [(r["phase"], r["sample_id"], r["reward"]) for r in records] == [
        ("greedy", "s0", 1.0),
        ("greedy", "s1", 0.0),
        ("sampled", "s0", 1.0),
        ("sampled", "s1", 0.0),
    ]
    with (folder / "table.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [line["id"] for line in table] == ["s0", "s1"]
    assert table[0]["greedy_completion"] == "<think>.</think><answer>4</answer>"
    assert [line["sampled_reward"] for line in table] == ["1.0", "0.0"]
    assert json.loads((folder / "summary.json").read_text())["accuracy_greedy"] == 0.5
    page = write_rollout_report(path).read_text(encoding="utf-8")
    assert "greedy, completion 1" in page
    assert "sampled, completion 1" in page


def test_an_earlier_evaluation_is_replaced(tmp_path: Path) -> None:
    for number in (2, 1):
        result = evaluated(*["4"] * number)
        path = write_evaluation(tmp_path, result, SpellingProcessor(), result.summary())
    assert len(read_rollouts(path)) == 2
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 2
