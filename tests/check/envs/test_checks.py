"""Every way to break the contract is found, by the right question and in the author's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vlrl.check.envs import speed
from vlrl.check.envs.agents import SHOWN
from vlrl.check.envs.checks import run_checks
from vlrl.check.envs.conduct import JUNKED, RESET, SAME
from vlrl.check.envs.episodes import Request
from vlrl.check.envs.run import ANOTHER, bench_env, check_env, verdict
from vlrl.check.envs.verdict import EnvCheck
from vlrl.errors import ConfigError, DataError

FAULTY = str(Path(__file__).parent / "faulty_envs.py")


def request(name: str, **fields: Any) -> Request:
    return Request(f"{FAULTY}:{name}", **{"episodes": 6, "max_turns": 30, "timeout_s": 20.0, **fields})


def answer(name: str, question: str) -> EnvCheck:
    """What a question comes to; nothing after it is asked."""
    return next(check for check in run_checks(request(name)) if check.name == question)


@pytest.mark.parametrize(
    ("name", "question", "status", "words"),
    [
        ("RaisesWhenMade", "construct", "fail", "raises ValueError: no display"),
        ("ReturnsTwo", RESET, "fail", "it is a tuple; return vlrl.protocols.Observation"),
        ("FloatImages", RESET, "fail", "[4, 4, 3] of float64; give [height, width, 3] uint8"),
        ("ShowsNothing", RESET, "fail", "neither text nor an image"),
        ("TextOnly", RESET, "warn", "nothing for a vision model to look at"),
        ("ForgetsItsSeed", SAME, "fail", "another first image"),
        ("DrawsFromNowhere", SAME, "fail", "another episode"),
        ("NamesStatesAnew", SAME, "fail", "info['state']"),
        ("NoNumber", SAME, "fail", "reward is nan; give a finite number"),
        ("TellsTheTruthOddly", SAME, "fail", "terminated is 'yes'; give True or False"),
        ("OneBeginning", "seeds differ", "warn", "1 first observations from 6 seeds"),
        ("RaisesOnNonsense", JUNKED, "fail", "nothing: raises ValueError"),
        ("PaysForNonsense", JUNKED, "fail", "pays for 23 of 23 texts"),
        ("KeepsSilent", JUNKED, "warn", "does not report"),
        ("PaysTooMuch", "oracle", "fail", "reward 1 is not within its reward_range, 0.0 to 0.5"),
        ("BlindOracle", "oracle", "fail", "solves 0 of 6 episodes"),
        ("KnowsOddRows", "oracle", "ok", "turns; it knows no answer to 2 more"),
        ("KnowsOddRows", SHOWN, "ok", "the oracle's actions are right"),
        ("KnowsNone", "oracle", "info", "it knows none of the tasks of 6 episodes"),
        ("KnowsNone", SHOWN, "info", "it is not known whether it uses it"),
        ("ForgetsHowItIsShown", SHOWN, "fail", "the oracle's actions miss"),
        ("StammeringAgent", "random agent", "warn", "not well-formed"),
        ("FreeLunch", "random agent", "warn", "nothing to learn"),
        ("NeverEnds", "episodes end", "warn", "random play has not ended after 30 turns"),
        ("KeepsItsPlace", "reset at any time", "fail", "what was left of the episode before"),
        ("SharesItsState", "snapshot and restore", "fail", "changes the snapshot"),
        ("SharesWhatItRestores", "snapshot and restore", "fail", "a snapshot serves once"),
        ("ForgetsItsTurn", "snapshot and restore", "fail", "after restore the same actions give another"),
        ("KeepsItToItself", "snapshot and restore", "fail", "restored in another environment"),
        ("TakesAnyTask", "unknown task key", "warn", "a misspelt key would go unnoticed"),
        ("ClosesOnce", "close", "fail", "raises RuntimeError: already closed"),
        ("Warned", "its library's checker", "warn", "1 warnings"),
        ("Refused", "its library's checker", "fail", "refuses it"),
    ],
)
def test_a_fault_is_found(
    name: str, question: str, status: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vlrl.check.envs.leftovers.PATIENCE_S", 0.1)
    check = answer(name, question)
    assert (check.status, words in check.found) == (status, True), check


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("LeavesThreads", "4 threads"),
        ("LeavesThreadsWhileOthersEnd", "4 threads"),
        ("LeavesFiles", "4 open files"),
        ("LeavesProcesses", "4 processes"),
    ],
)
def test_what_is_left_behind_is_counted(name: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vlrl.check.envs.leftovers.PATIENCE_S", 0.1)
    check = answer(name, "leaves nothing behind")
    for child in getattr(_loaded(name), "kept", ()):
        child.kill() if hasattr(child, "kill") else child.close()
    assert check.status == "fail"
    assert words in check.found


def _loaded(name: str) -> Any:
    from vlrl.registry import resolve

    return resolve("envs", f"{FAULTY}:{name}")


def test_the_place_is_in_the_authors_file() -> None:
    check = answer("RaisesOnNonsense", JUNKED)
    (place,) = check.findings
    file, _, line = place.removeprefix("at ").rpartition(":")
    assert file == FAULTY
    assert ".index(" in Path(FAULTY).read_text().splitlines()[int(line) - 1]


def test_without_a_first_observation_nothing_more_is_asked() -> None:
    assert [check.name for check in run_checks(request("ReturnsTwo"))] == ["construct", RESET]


def test_a_good_environment_keeps_the_contract() -> None:
    asked: list[str] = []
    result = check_env(request("Good", options={"color": 90}), on_step=asked.append)
    assert result["ok"]
    won_blindly = [check["name"] for check in result["checks"] if check["status"] not in ("ok", "info")]
    assert won_blindly == ["null agents"]  # going right is always right
    assert [check["name"] for check in result["checks"]][3:5] == [SAME, ANOTHER]
    assert set(asked) >= {check["name"] for check in result["checks"]}
    assert verdict(result) == "keeps the contract, 1 warning"
    oracle = next(check for check in result["checks"] if check["name"] == "oracle")
    assert oracle["found"].startswith("solves 6 of 6 episodes, mean return 1, rewards 0 to 1")


def test_what_hangs_on_hash_order_is_found_in_another_process() -> None:
    result = check_env(request("HangsOnHashes"))
    checks = {check["name"]: check for check in result["checks"]}
    assert checks[SAME]["status"] == "ok"
    assert checks[ANOTHER]["status"] == "fail"
    assert verdict(result) == f"breaks the contract: {ANOTHER}"


@pytest.mark.parametrize(
    ("name", "words", "finding"),
    [
        ("Hangs", "a call has not returned after 1 s", f"at {FAULTY}"),
        ("Crashes", "was killed by SIGSEGV", ""),
        ("Exits", "exit code 7", "the emulator is gone"),
    ],
)
def test_what_ends_the_process_is_a_verdict_too(name: str, words: str, finding: str) -> None:
    result = check_env(request(name, timeout_s=1.0))
    assert not result["ok"]
    assert [check["name"] for check in result["checks"]] == ["construct", RESET, "instructions", SAME]
    assert words in result["checks"][-1]["found"]
    assert finding in "".join(result["checks"][-1]["findings"])


def test_a_wrong_option_or_task_is_the_users_mistake() -> None:
    with pytest.raises(ConfigError, match="does not take the options"):
        check_env(request("Good", options={"colour": 1}))
    with pytest.raises(ConfigError, match="unknown task key 'level'"):
        check_env(request("Good", task={"level": 1}))


def test_measures() -> None:
    measured = bench_env(request("Good"), 0.05)
    assert measured["observation"] == ["8×8"]
    assert measured["observation_bytes"] == 192
    assert measured["num_steps"] >= 2
    assert 0 < measured["num_steps"] / measured["steps_per_second"] < 1
    assert measured["step_ms_p50"] <= measured["step_ms_p99"]


def test_what_cannot_be_measured_is_said() -> None:
    with pytest.raises(DataError, match=r"exit code 7.*vlrl env check"):
        bench_env(request("Exits"), 0.05)


def test_slow_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SLOW_STEPS_PER_S", 1e12)
    monkeypatch.setattr(speed, "CHECK_S", 0.01)
    monkeypatch.setattr("vlrl.check.envs.leftovers.PATIENCE_S", 0.1)
    assert answer("Good", "speed").status == "warn"
