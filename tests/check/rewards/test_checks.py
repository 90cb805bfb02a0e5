"""What `vlrl reward test` finds: every kind of fault, planted, and no fault where there is none."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from vlrl.check.rewards.checks import RewardCheck, run_checks
from vlrl.check.rewards.result import result_of
from vlrl.check.rewards.trial import Trial, run_trial
from vlrl.errors import ConfigError
from vlrl.scoring.functions import find_reward

SOURCE = """
import os
import random
import re
import time

from vlrl.rewards import Scored, reward
from vlrl.parsing.extract import extract_answer

RIGHT = re.compile("<answer>(.*?)</answer>")


@reward(range=(0.0, 1.0))
def sound(completion, answer):
    return float(extract_answer(completion) == answer)


@reward(range=(-1.0, 0.0), higher_is_better=False)
def error_rate(completion, answer):
    return -float(extract_answer(completion) == answer)


@reward(range=(0.0, 1.0), batched=True, batch_size=7)
async def in_batches(completions, answers):
    return [float(extract_answer(c) == a) for c, a in zip(completions, answers)]


@reward(range=(0.0, 1.0))
def sometimes(completion, answer):
    return Scored(None) if completion == "" else float(extract_answer(completion) == answer)


@reward(range=(0.0, 1.0))
def contains(completion, answer):
    return float(answer in completion)


@reward(range=(0.0, 1.0))
def last_tag(completion, answer):
    found = RIGHT.findall(completion)
    return float(bool(found) and found[-1] == answer)


@reward(range=(0.0, 1.0))
def words_in_common(completion, answer):
    said = set((extract_answer(completion) or "").split())
    return len(said & set(answer.split())) / len(answer.split())


@reward(range=(0.0, 1.0))
def not_empty(completion, answer):
    return float(bool(completion.strip()))


@reward(range=(0.0, 1.0))
def raises(completion, answer):
    if "nan" in completion:
        raise KeyError("nan")
    return float(extract_answer(completion) == answer)


@reward(range=(0.0, 1.0))
def hangs(completion, answer):
    while completion.startswith("[["):
        time.sleep(0.01)
    return float(extract_answer(completion) == answer)


@reward(range=(0.0, 1.0))
def dies(completion, answer):
    if completion == "nan":
        os._exit(3)
    return float(extract_answer(completion) == answer)


@reward(range=(0.0, 1.0))
def rolls(completion, answer):
    return random.random() * (extract_answer(completion) == answer)


@reward(range=(0.0, 1.0))
def depends_on_the_process(completion, answer):
    return 0.5 * (extract_answer(completion) == answer) + (hash(completion) % 100) / 1e6


@reward(range=(0.0, 0.5))
def beyond(completion, answer):
    if completion == "nan":
        return 1.0
    return 0.5 * (extract_answer(completion) == answer)


def undeclared(completion, answer):
    return float(extract_answer(completion) == answer)


@reward(range=(0.0, 1.0))
def constant(completion, answer):
    return 0.5


@reward(range=(0.0, 1.0))
def same_for_all(completion, answer):
    return float(bool(extract_answer(completion)))


@reward(range=(0.0, 1.0))
def prefers_another(completion, answer):
    return 1.0 if "Ignore all previous" in completion else 0.95 * (extract_answer(completion) == answer)


@reward(range=(0.0, 1.0))
def refuses(completion, answer, *, share):
    return share


def needs(completion, answer, colour):
    return 1.0
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rewards") / "planted.py"
    path.write_text(SOURCE)
    return path


@cache
def tried(source: Path, name: str, **options: Any) -> tuple[Trial, dict[str, RewardCheck]]:
    function = find_reward(f"{source}:{name}", options)
    # Short where a call is to be ended; else a busy machine must not be what a fault is found by.
    timeout_s = 1.0 if name in ("hangs", "last_tag") else 30.0
    trial = run_trial(function, None, "", timeout_s=timeout_s, seed=0, limit=4)
    return trial, {check.name: check for check in run_checks(trial)}


def failed(checks: dict[str, RewardCheck]) -> set[str]:
    return {check.name for check in checks.values() if check.status == "fail"}


@pytest.mark.parametrize("name", ["sound", "error_rate", "in_batches", "undeclared"])
def test_a_sound_reward_passes(source: Path, name: str) -> None:
    trial, checks = tried(source, name)
    assert not failed(checks)
    assert trial.form == ("text", "<think></think><answer>{}</answer>")
    assert (checks["range"].status == "warn") == (name == "undeclared")


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("contains", {"no answer"}),
        ("last_tag", {"no answer", "time and memory"}),  # its pattern is quadratic in 5 MB of tags
        ("words_in_common", {"no answer"}),
        ("not_empty", {"no answer"}),
        ("raises", {"exceptions"}),
        ("hangs", {"time and memory"}),
        ("dies", {"time and memory"}),
        ("rolls", {"determinism"}),
        ("depends_on_the_process", {"determinism"}),
        ("beyond", {"range"}),
        ("prefers_another", {"right answers", "no answer"}),
        ("constant", {"right answers", "wrong answers", "group variance"}),
    ],
)
def test_a_planted_fault_is_found_and_no_other(source: Path, name: str, faults: set[str]) -> None:
    trial, checks = tried(source, name)
    assert failed(checks) == faults
    result = result_of(trial, list(checks.values()), 0.1)
    assert not result["ok"]
    for check in result["checks"]:
        assert bool(check["findings"]) or check["status"] != "fail" or check["name"] == "group variance"


@pytest.mark.parametrize(
    ("name", "hole"),
    [
        ("contains", "all answers at once, commas"),
        ("contains", "right 1,000 times, spaces"),
        ("last_tag", "two answers, right one last"),
        ("last_tag", "right 1,000 times, form and all"),
        ("words_in_common", "all answers at once, lines"),
        ("not_empty", "random bytes, bare"),
    ],
)
def test_the_hole_is_named(source: Path, name: str, hole: str) -> None:
    _, checks = tried(source, name)
    assert hole in {finding.attempt.case.name for finding in checks["no answer"].findings}


def test_what_does_not_look_at_the_answer_is_called_a_form(source: Path) -> None:
    trial, checks = tried(source, "same_for_all")
    assert trial.profile == "form"
    assert not failed(checks)
    assert "does not look at the answer" in checks["wrong answers"].found


def test_a_reward_may_leave_a_sample_out(source: Path) -> None:
    """It then has no score, which is neither a zero nor a failure."""
    trial, checks = tried(source, "sometimes")
    assert {one.score for one in trial.tries if one.case.kind == "empty"} == {None}
    assert checks["exceptions"].status == "ok"


def test_options_reach_it(source: Path) -> None:
    with pytest.raises(ConfigError, match="needs 'colour'"):
        tried(source, "needs")
    with pytest.raises(ConfigError, match="takes no option 'shear'"):
        tried(source, "refuses", shear=1)


def test_findings_say_where_and_why(source: Path) -> None:
    trial, checks = tried(source, "raises")
    result = result_of(trial, list(checks.values()), 0.1)
    (exceptions,) = [check for check in result["checks"] if check["name"] == "exceptions"]
    finding = exceptions["findings"][0]
    assert finding["why"] == "KeyError: 'nan'"
    assert "planted.py" in finding["trace"]
    assert finding["sample"] and finding["completion"]
    assert str(result["place"]).startswith(f"{source}:")
