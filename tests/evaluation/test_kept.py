"""An evaluation is kept row by row: one that was stopped goes on, another one is refused."""

from __future__ import annotations

import asyncio
import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import TextProcessor, in_process, make_config, make_context, make_generation, make_sample

from vlrl.cli.evaluation_files import write_evaluation
from vlrl.config import Config
from vlrl.data.run_data import Sources
from vlrl.errors import ConfigError, EngineError, ScoringError
from vlrl.evaluate import Evaluation, evaluate
from vlrl.evaluation.kept import SAMPLES_FILE, KeptAnswers
from vlrl.rollout.session import Session
from vlrl.scoring.compose import ComposedReward
from vlrl.tracking.rollouts.read import read_rollouts
from vlrl.types import Generation, Sampling
from vlrl.viewer.pages.report import write_rollout_report

NUM_ROWS = 5


class SpellingProcessor(TextProcessor):
    """A character a token, told one by one."""

    def token_texts(self, token_ids: Sequence[int]) -> list[str]:
        return [chr(token) for token in token_ids]


class Bench:
    """A folder of an evaluation, rows in a file, and a policy that may end everything."""

    def __init__(self, tmp_path: Path) -> None:
        (tmp_path / "model").mkdir()
        (tmp_path / "model" / "config.json").write_text("{}")
        self.rows = tmp_path / "rows.jsonl"
        self.rows.write_text(
            "".join(json.dumps({"problem": f"{n}", "answer": "4"}) + "\n" for n in range(NUM_ROWS))
        )
        self.model, self.out = tmp_path / "model", tmp_path / "out"
        self.num_asked = 0
        self.ends_after: int | None = None

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """Answer; the one after `ends_after` others fails, once what those gave is kept."""
        if self.num_asked == self.ends_after:
            while not self.lines():
                await asyncio.sleep(0.01)
            raise EngineError("the engine is gone")
        self.num_asked += 1
        right = sampling.seed % 2 if sampling.temperature else session.sample.id != "s0"
        return make_generation([ord(c) for c in f"<think>.</think><answer>{4 if right else 5}</answer>"])

    def config(self, **sections: Any) -> Config:
        sections = {"eval": {"num_answers": 3}, "rewards": [{"name": "answer_normalized"}], **sections}
        return make_config(self.model, data={"train": str(self.rows), "eval": str(self.rows)}, **sections)

    def evaluate(self, ends_after: int | None = None, **sections: Any) -> Evaluation:
        config = self.config(**sections)
        self.num_asked, self.ends_after = 0, ends_after
        samples = [
            make_sample([1, 2], id=f"s{n}", answer="4", source="heldout/rows.jsonl", metadata={"odd": n % 2})
            for n in range(NUM_ROWS)
        ]
        context = make_context(self, SpellingProcessor(), config)
        kept = KeptAnswers(self.out, config, Sources.open(config), context.processor)
        with ComposedReward(config.rewards, {}, config.scoring, inline=True) as reward:
            return asyncio.run(evaluate(samples, in_process(context, reward), reward, config, kept=kept))

    def lines(self) -> list[Mapping[str, Any]]:
        return read_rollouts(self.out / SAMPLES_FILE)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_every_answer_is_kept_with_its_reward(bench: Bench) -> None:
    result = bench.evaluate()
    assert [(r["phase"], r["sample_id"], r["group_index"]) for r in bench.lines()] == [
        *(("greedy", f"s{n}", 0) for n in range(NUM_ROWS)),
        *(("sampled", f"s{n}", index) for n in range(NUM_ROWS) for index in range(3)),
    ]
    write_evaluation(bench.out, result.summary())
    with (bench.out / "table.csv").open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [line["id"] for line in table] == [f"s{n}" for n in range(NUM_ROWS)]
    assert table[0]["greedy_completion"] == "<think>.</think><answer>5</answer>"
    assert {line["greedy_reward"] for line in table[1:]} == {"1.0"}
    assert {"sampled_1_reward", "sampled_3_outcome"} < table[0].keys()
    assert json.loads((bench.out / "summary.json").read_text())["accuracy_greedy"] == 0.8
    page = write_rollout_report(bench.out / SAMPLES_FILE).read_text(encoding="utf-8")
    assert "greedy, completion 1" in page and "sampled, completion 3" in page


def test_what_was_stopped_goes_on_with_the_same_numbers(bench: Bench, tmp_path: Path) -> None:
    whole = bench.evaluate()
    total = bench.num_asked
    expected, bench.out = bench.lines(), tmp_path / "stopped"
    with pytest.raises(EngineError):
        bench.evaluate(ends_after=9)
    num_kept = len(bench.lines())
    assert 0 < num_kept < total
    assert bench.evaluate().summary() == whole.summary()
    assert bench.num_asked == total - num_kept
    timeless = [[r | {"duration_s": 0} for r in lines] for lines in (bench.lines(), expected)]
    assert timeless[0] == timeless[1]
    assert bench.evaluate().summary() == whole.summary()
    assert bench.num_asked == 0


def test_a_row_that_a_kill_cut_short_is_asked_again(bench: Bench) -> None:
    whole = bench.evaluate()
    path = bench.out / SAMPLES_FILE
    text = path.read_text()
    cut = text.splitlines(keepends=True)
    for torn, num_missing in ((text[:-20], 3), ("".join(cut[:-1]), 3), ("".join(cut[1:]), 1)):
        path.write_text(torn)
        assert bench.evaluate().summary() == whole.summary()
        assert bench.num_asked == num_missing
        assert len(bench.lines()) == len(cut)


def test_an_answer_that_could_not_be_scored_is_asked_again(bench: Bench, tmp_path: Path) -> None:
    own = tmp_path / "own.py"
    own.write_text("from pathlib import Path\ndef score(completion, answer):\n"
                   f"    if not Path({str(tmp_path / 'up')!r}).exists(): raise RuntimeError('down')\n"
                   "    return 1.0\n")  # fmt: skip
    rewards: dict[str, Any] = {"rewards": [{"name": f"{own}:score"}]}
    with pytest.raises(ScoringError, match="down"):
        bench.evaluate(**rewards)
    (tmp_path / "up").touch()
    assert bench.evaluate(**rewards).accuracy_greedy == 1.0
    assert bench.num_asked == 4 * NUM_ROWS


def test_another_evaluation_is_refused_and_told_what_differs(bench: Bench) -> None:
    bench.evaluate()
    for sections, told in (
        ({"rollout": {"max_tokens": 7}}, r"rollout\.max_tokens: 12 → 7"),
        ({"eval": {"num_answers": 2}}, r"eval\.num_answers: 3 → 2"),
        ({"run": {"seed": 3}}, r"run\.seed: 0 → 3"),
    ):
        with pytest.raises(ConfigError, match=told + ".*give another folder"):
            bench.evaluate(**sections)
    (bench.model / "config.json").write_text('{"a": 1}')
    with pytest.raises(ConfigError, match=r"fingerprints\.model"):
        bench.evaluate()


def test_what_changes_no_answer_may_change(bench: Bench) -> None:
    bench.evaluate()
    found = bench.evaluate(eval={"num_answers": 3, "group_by": ["odd"]}, run={"name": "other"})
    assert bench.num_asked == 0
    assert {name: part.num_samples for name, part in found.parts.items()} == {"odd=0": 3, "odd=1": 2}


def test_answers_of_an_unknown_evaluation_are_refused(bench: Bench) -> None:
    bench.evaluate()
    (bench.out / "evaluation.json").unlink()
    with pytest.raises(ConfigError, match=r"no evaluation\.json"):
        bench.evaluate()
