"""Rubrics: judge and code criteria together, weights by hand, nothing that a row or a completion can add."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import make_sample, make_trajectory
from judge_server import JudgeServer, Reply

from vlrl.config.options import RewardConfig
from vlrl.registry import resolve
from vlrl.rewards.judge.rubric import Criterion, rubric, weighted
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.types import Score

CODE = {"reward": "numeric", "weight": 2, "options": {"part": "whole"}}
COLOUR = {"judge": "It names the colour.", "name": "colour"}
MADE_UP = {"judge": "It describes text that is not there.", "name": "made_up", "weight": -1}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with JudgeServer().running() as running:
        yield running


def verdicts(server: JudgeServer, **by_word: float) -> None:
    """Criteria that hold a word get its score, the others 0."""

    def answer(seen: Any) -> Reply:
        criterion = seen.parts[-1]["text"].split("Criterion: ")[1].split("\n")[0]
        score = next((value for word, value in by_word.items() if word in criterion), 0)
        return Reply(json.dumps({"reason": "r", "score": score}))

    server.answer = answer


def score(server: JudgeServer, lines: Any, *texts: str, **metadata: Any) -> list[Score | RewardFailure]:
    sample = make_sample(answer=8, metadata=metadata)
    where = {"base_url": server.url, "model": "m", "backoff_s": 0}
    options: dict[str, Any] = {"endpoint": where, "part": "whole"}
    if lines is not None:
        options["criteria"] = lines
    trajectories = [make_trajectory(sample, [1], completion=text) for text in texts]
    with ComposedReward([RewardConfig(name="rubric", options=options)]) as reward:
        return asyncio.run(reward.score_all(trajectories))


@pytest.mark.parametrize(
    ("values", "expected"),
    [((1, 1, 0), 1), ((1, 0, 0), 2 / 3), ((0, 0.5, 0), 0.5 / 3), ((1, 1, 1), 2 / 3), ((0, 0, 1), 0)],
)
def test_the_weights_by_hand(values: tuple[float, ...], expected: float) -> None:
    lines = [Criterion("code", 2), Criterion("colour", 1), Criterion("made_up", -1)]
    found = weighted(lines, dict(zip(("code", "colour", "made_up"), values, strict=True)))
    assert found == pytest.approx(expected)


def test_judge_and_code_criteria_together(server: JudgeServer) -> None:
    verdicts(server, colour=0.5)
    right, wrong = score(server, [CODE, COLOUR, MADE_UP], "8", "9")
    assert isinstance(right, Score) and isinstance(wrong, Score)
    assert right.total == pytest.approx(2.5 / 3) and wrong.total == pytest.approx(0.5 / 3)
    assert right.parts == {
        "rubric": right.total, "rubric/numeric": 1, "rubric/colour": 0.5, "rubric/made_up": 0
    }  # fmt: skip
    assert resolve("rewards", "rubric") is rubric


def test_a_row_adds_criteria_for_the_judge_and_nothing_else(server: JudgeServer, tmp_path: Path) -> None:
    verdicts(server, wheel=1)
    (found,) = score(server, [CODE], "8", criteria=["The wheel is found.", {"judge": "No.", "weight": 1}])
    assert isinstance(found, Score) and found.total == pytest.approx(3 / 4)
    (alone,) = score(server, None, "9", criteria=["The wheel is found."])
    assert isinstance(alone, Score) and alone.total == 1
    marker = tmp_path / "ran"
    code = tmp_path / "evil.py"
    code.write_text(f"open({str(marker)!r}, 'w')\ndef f(completion): return 1.0\n")
    by_file, by_name = [{"reward": f"{code}:f"}], [{"reward": "numeric"}]
    for criteria in (by_file, by_name, [{"judge": ""}], [7], "text", {"a": 1}):
        (refused,) = score(server, [CODE], "8", criteria=criteria)
        assert isinstance(refused, RewardFailure), criteria
    assert not marker.exists()


def test_templates_in_a_criterion_and_in_a_completion_are_text(server: JudgeServer) -> None:
    verdicts(server)
    score(server, None, "{{ 7 * 6 }} {% raw %} Criterion: colour", criteria=["{{ lo.__class__ }} wheel {%"])
    text = server.seen[-1].parts[-1]["text"]
    assert "{{ lo.__class__ }} wheel {%" in text and "{{ 7 * 6 }}" in text and "42" not in text


def test_a_criterion_that_cannot_be_scored_is_a_failure(server: JudgeServer, tmp_path: Path) -> None:
    verdicts(server)
    code = tmp_path / "mine.py"
    code.write_text("def f(completion): return float(completion)\ndef g(completion): return 99.0\n")
    both = [{"reward": f"{code}:f"}, {"reward": f"{code}:g", "name": "cut"}]
    failed, fine = score(server, both, "x", "0.5")
    assert isinstance(failed, RewardFailure) and "criterion 'f'" in failed.reason
    assert isinstance(fine, Score) and fine.parts["rubric/cut"] == 1 and fine.total == 0.75
    server.answer = lambda seen: Reply("no verdict")
    (failed,) = score(server, [COLOUR], "8")
    assert isinstance(failed, RewardFailure)


@pytest.mark.parametrize(
    "criteria",
    [[], [{"weight": 1}], [{**CODE, "judge": "x"}], [{**CODE, "weight": 0}], [{**CODE, "wieght": 1}],
     [MADE_UP], [{"reward": "judge"}], [{**CODE, "weight": "a"}], [COLOUR] * 65],
    ids=range(9),
)  # fmt: skip
def test_wrong_criteria_are_named(server: JudgeServer, criteria: Any) -> None:
    (failed,) = score(server, criteria, "8")
    assert isinstance(failed, RewardFailure)
    assert any(word in failed.reason for word in ("criteri", "rubric")), failed.reason


def test_empty_text_earns_nothing(server: JudgeServer) -> None:
    verdicts(server, colour=1)
    for found in score(server, [CODE, COLOUR], "", "x" * 30_000):
        assert isinstance(found, Score) and found.total == 0
    assert server.seen == []
