"""Functions written for other projects, in files, unchanged: what they are given, what their results mean."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from builders import make_sample, make_trajectory

from vlrl.config.options import RewardConfig, ScoringConfig
from vlrl.errors import ConfigError
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.scoring.functions import find_reward
from vlrl.types import Score

TRL = """
def contents(completions, **kwargs):
    return [float(len(c[0]["content"])) for c in completions]

def accuracy(prompts, completions, answer, level, **kwargs):
    assert [p[-1]["content"][0]["type"] for p in prompts] == ["image"] * len(completions)
    assert all(ids == [7, 8] for ids in kwargs["completion_ids"])
    right = [c[-1]["content"] == a for c, a in zip(completions, answer)]
    return [1.0 if r else None if l > 1 else 0.0 for r, l in zip(right, level)]

def texts(prompts, completions, solution):
    assert prompts == ["What?"] * len(completions)
    return [float(c == s) for c, s in zip(completions, solution)]

async def later(completions, scale, **kwargs):
    return [scale for _ in completions]

def curriculum(completions, trainer_state, **kwargs):
    return [float(trainer_state.global_step)] * len(completions)
"""

VLM_R1 = """
import re

def format_reward(completions, **kwargs):
    pattern = r"<think>.*?</think>\\s*<answer>.*?</answer>"
    return [1.0 if re.fullmatch(pattern, c[0]["content"], re.DOTALL) else 0.0 for c in completions]

def accuracy_reward(completions, solution, **kwargs):
    rewards = []
    contents = [c[0]["content"] for c in completions]
    for content, sol, method in zip(contents, solution, kwargs.get("accu_reward_method")):
        assert kwargs.get("problem")[0] == "What?" and kwargs.get("image_path")[0] == ["a.png"]
        truth = re.search(r"<answer>(.*?)</answer>", sol).group(1).strip()
        rewards.append({"default": 1.0, "mcq": 2.0}[method] * (f"<answer>{truth}</answer>" in content))
    return rewards
"""

EASYR1 = """
def compute_score(reward_input, format_weight=0.5):
    if not isinstance(reward_input, dict):
        raise ValueError("sequential")
    good = reward_input["response"] == reward_input["ground_truth"]
    return {"overall": good * (1 - format_weight), "accuracy": float(good),
            "length": reward_input["response_length"], "format": None}
"""

EASYR1_BATCH = """
REWARD_TYPE = "batch"

def compute_score(inputs, bonus: float = 0.0):
    if not isinstance(inputs, list):
        raise ValueError("batch")
    return [{"overall": float(i["response"] == i["ground_truth"]) + bonus, "accuracy": 0.25} for i in inputs]

def wrong(reward_inputs):
    return [1.0 for _ in reward_inputs]
"""

VERIFIERS = """
def exact(completion, answer, **kwargs):
    return 1.0 if completion[-1]["content"] == answer else 0.0

def stateful(state, info, prompt, parser):
    assert state["answer"] == "8" and state["prompt"] == prompt
    assert state["completion"][0]["role"] == "assistant"
    assert parser.parse_answer(state["completion"]) == state["completion"][-1]["content"]
    return float(info["points"])

async def slow(completion):
    return 0.5

class Rubric:
    def __init__(self, funcs, weights):
        self.funcs, self.weights = funcs, weights

rubric = Rubric([exact, stateful], [1.0, 0.1])
mixed = Rubric([exact, slow], [1.0, 2.0])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in {
        "trl_file": TRL, "vlm": VLM_R1, "easy": EASYR1, "easy_batch": EASYR1_BATCH, "verified": VERIFIERS,
    }.items():  # fmt: skip
        (tmp_path / f"{name}.py").write_text(text)
    return tmp_path


def score(name: Path | str, *texts: str, adapter: Any = "auto", step: int = 0, **options: Any) -> list[Any]:
    """Scores, or the text of the failure, of answers to a question about an image whose answer is "8"."""
    content = [{"type": "image"}, {"type": "text", "text": "What?"}]
    metadata = {"level": 1, "image_path": ["a.png"], "info": {"points": 3}}
    sample = make_sample(answer="8", messages=({"role": "user", "content": content},), metadata=metadata)
    scored = [make_trajectory(sample, [7, 8], completion=text) for text in texts]
    config = RewardConfig(name=str(name), adapter=adapter, options=options)
    with ComposedReward([config], scoring=ScoringConfig(num_workers=1)) as reward:
        results = asyncio.run(reward.score_all(scored, step))
    return [str(r) if isinstance(r, RewardFailure) else r for r in results]


def totals(results: list[Any]) -> list[Any]:
    return [r.total if isinstance(r, Score) else r for r in results]


def test_trl_functions_are_given_messages_and_columns(folder: Path) -> None:
    assert totals(score(f"{folder}/trl_file.py:contents", "abc", "")) == [3.0, 0.0]
    assert totals(score(f"{folder}/trl_file.py:accuracy", "8", "9")) == [1.0, 0.0]
    assert totals(score(f"{folder}/trl_file.py:accuracy", "8", adapter="trl")) == [1.0]
    assert totals(score(f"{folder}/trl_file.py:curriculum", "8", step=7)) == [7.0]


def test_trl_none_does_not_count(folder: Path) -> None:
    """TRL's way of saying that a function does not apply to a row."""
    assert score(f"{folder}/trl_file.py:accuracy", "9", level=[2]) == [Score(0.0, {})]


def test_trl_functions_for_texts(folder: Path) -> None:
    assert totals(score(f"{folder}/trl_file.py:texts", "8", "9", adapter="trl_text")) == [1.0, 0.0]


def test_async_trl_functions_and_options(folder: Path) -> None:
    assert totals(score(f"{folder}/trl_file.py:later", "a", "b", scale=0.5)) == [0.5, 0.5]
    with pytest.raises(ConfigError, match="takes no option 'scael'"):
        find_reward(f"{folder}/trl_file.py:texts", {"scael": 1}, "trl")


def test_vlm_r1_functions(folder: Path) -> None:
    good, bad = "<think></think><answer>8</answer>", "<answer>9</answer>"
    assert totals(score(f"{folder}/vlm.py:format_reward", good, bad, adapter="vlm_r1")) == [1.0, 0.0]
    accuracy = f"{folder}/vlm.py:accuracy_reward"
    assert totals(score(accuracy, good, bad, adapter="vlm_r1")) == [1.0, 0.0]
    assert totals(score(accuracy, good, adapter="vlm_r1", accu_reward_method="mcq")) == [2.0]


def test_easyr1_counts_overall_and_logs_the_rest(folder: Path) -> None:
    (right,) = score(f"{folder}/easy.py:compute_score", "8")
    assert right == Score(0.5, {"compute_score": 0.5, "accuracy": 1.0, "length": 2.0})
    assert totals(score(f"{folder}/easy.py:compute_score", "8", "9", format_weight=0.25)) == [0.75, 0.0]
    batch = f"{folder}/easy_batch.py:compute_score"
    assert totals(score(batch, "8", "9", adapter="easyr1", bonus=1.0)) == [2.0, 1.0]
    (failed,) = score(f"{folder}/easy_batch.py:wrong", "8")
    assert "must be a mapping with 'overall', not 1.0" in failed


def test_verifiers_functions_and_rubrics(folder: Path) -> None:
    path = f"{folder}/verified.py"
    assert totals(score(f"{path}:exact", "8", "9", adapter="verifiers")) == [1.0, 0.0]
    assert totals(score(f"{path}:stateful", "8", adapter="verifiers")) == [3.0]
    assert totals(score(f"{path}:slow", "8", adapter="verifiers")) == [0.5]
    (found,) = score(f"{path}:rubric", "8")
    assert found.total == pytest.approx(1.3)
    assert found.parts == {"rubric": found.total, "exact": 1.0, "stateful": 3.0}
    assert totals(score(f"{path}:mixed", "8", "9")) == [2.0, 1.0]


def test_an_adapter_refuses_what_it_cannot_call(folder: Path) -> None:
    with pytest.raises(ConfigError, match="has no parameter 'completions'"):
        find_reward(f"{folder}/verified.py:slow", adapter="trl")
    with pytest.raises(ConfigError, match="REWARD_TYPE' is a str, not a function"):
        find_reward(f"{folder}/easy_batch.py:REWARD_TYPE", adapter="easyr1")
    with pytest.raises(ConfigError, match="neither a function nor a rubric"):
        find_reward(f"{folder}/easy_batch.py:REWARD_TYPE", adapter="verifiers")


def test_auto_leaves_alone_what_is_written_for_vlrl() -> None:
    assert find_reward("answer_exact").function.__name__ == "answer_exact"
    assert not find_reward("answer_exact").declared.batched
