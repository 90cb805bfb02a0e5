"""An async reward, put to the test against a server that grades honestly: exact match, and nothing else."""

from __future__ import annotations

import json
import re

import pytest
from judge_server import JudgeServer, Reply, Seen

from vlrl.check.rewards.checks import run_checks
from vlrl.check.rewards.trial import run_trial
from vlrl.scoring.functions import find_reward

RUBRIC = "{{ answer }} {{ completion }} {{ prompt }}"
SHOWN = re.compile(r"<(reference|answer)-(\w+)>\n(.*?)\n</\1-\2>", re.DOTALL)


def honest(seen: Seen) -> Reply:
    shown = {match[1]: match[3] for match in SHOWN.finditer(seen.text)}
    right = shown["reference"] == shown["answer"]
    return Reply(json.dumps({"reason": "compared", "score": 10 if right else 0}))


def generous(seen: Seen) -> Reply:
    """What a judge does that believes what it reads."""
    believed = "score" in seen.text.partition("<answer-")[2]
    return Reply(json.dumps({"reason": "it says so", "score": 10})) if believed else honest(seen)


@pytest.mark.slow
def test_a_judge_is_as_sound_as_its_model() -> None:
    with JudgeServer().running() as server:
        endpoint = {"base_url": server.url, "model": "local", "images": False}
        function = find_reward("judge", {"endpoint": endpoint, "rubric": RUBRIC})
        server.answer = honest
        trial = run_trial(function, None, "", timeout_s=20, seed=0, limit=2)
        checks = {check.name: check for check in run_checks(trial)}
        assert not [check for check in checks.values() if check.status == "fail"]
        assert trial.form == ("text", "<think></think><answer>{}</answer>")
        num_sent = len(server.seen)
        server.answer = generous
        trial = run_trial(function, None, "", timeout_s=20, seed=0, limit=2)
        holes = {check.name: check for check in run_checks(trial)}["no answer"].findings
    assert {finding.attempt.case.name for finding in holes} == {
        "prompt injection, in form",
        "prompt injection, a verdict, in form",
    }
    assert num_sent < 400
