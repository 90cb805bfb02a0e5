"""One digit a turn: what is paid, what a wrong or missing sum costs, and which scans are shown."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vlrl.envs.visual.games.running_digits import RunningDigits
from vlrl.envs.visual.questions.digit_sum import scans_of
from vlrl.errors import ConfigError


def play(
    env: RunningDigits, says: list[str], level: int = 2, seed: int = 3
) -> list[tuple[float, bool, bool, bool]]:
    env.reset({"level": level}, seed)
    results = [env.step(text) for text in says]
    return [(r.reward, r.terminated, bool(r.info["success"]), bool(r.info["invalid"])) for r in results]


def right(level: int = 2, seed: int = 3) -> list[str]:
    env = RunningDigits()
    env.reset({"level": level}, seed)
    sums = np.cumsum(env.world.digits).tolist()
    assert len(sums) == level + 1
    return [f"I think <action>{total}</action>" for total in sums]


def test_the_last_sum_decides() -> None:
    good = right()
    assert [r[0] for r in play(RunningDigits(), good)] == [0.0, 0.0, 1.0]
    assert play(RunningDigits(), ["<action>99</action>", "?", good[2]])[-1] == (1.0, True, True, False)
    assert play(RunningDigits(), [*good[:2], "<action>99</action>"])[-1] == (0.0, True, False, False)


def test_with_partial_every_right_sum_is_paid_alike() -> None:
    good = right()
    assert [r[0] for r in play(RunningDigits(partial=True), good)] == pytest.approx([1 / 3] * 3)
    rewards = [r[0] for r in play(RunningDigits(partial=True), [good[0], "<action>99</action>", good[2]])]
    assert rewards == pytest.approx([1 / 3, 0.0, 1 / 3])


@pytest.mark.parametrize(
    "text",
    ["", "7", "<action></action>", "<action>-3</action>", "<action>1e1</action>", "<action>٣</action>"],
)
def test_what_is_no_sum_is_a_wrong_one_and_said_so(text: str) -> None:
    env = RunningDigits(invalid_penalty=0.25)
    env.reset({"level": 1}, 0)
    result = env.step(text)
    assert (result.reward, result.info["invalid"]) == (-0.25, True)
    assert "such as <action>" in result.observation.text
    assert len(result.observation.images) == 1


def test_images_are_scans_of_the_split() -> None:
    for scans in ("train", "heldout"):
        known = {scan.tobytes(): int(label) for scan, label in zip(*scans_of(scans), strict=True)}
        env: Any = RunningDigits(scans=scans, image_size=96)
        for seed in range(20):
            env.reset({"level": 1}, seed)
            for digit, shown in zip(env.world.digits, env.world.images, strict=True):
                # 8 × 8 fields of 12 pixels; bicubic enlargement keeps a field's own grey near its middle
                fields = shown[6::12, 6::12, 0].astype(int)
                nearest = min(
                    known,
                    key=lambda scan: int(np.abs(np.frombuffer(scan, np.uint8).reshape(8, 8) - fields).sum()),
                )
                assert known[nearest] == digit


def test_the_state_names_the_turn_and_the_summary_what_was_given() -> None:
    env = RunningDigits()
    env.reset({"level": 2}, 5)
    result = env.step("<action>0</action>")
    assert result.info["state"] == "1"
    assert result.observation.summary == f"So far it is {env.world.digits[0]}."


def test_the_digits_may_be_asked_for_instead_of_their_sum() -> None:
    env = RunningDigits(say="digits", partial=True)
    env.reset({"level": 2}, 5)
    a, b, c = env.world.digits
    results = [env.step(f"<action>{said}</action>") for said in (f"{a}", f"0{a}{b}", f"{a}{b}{c}")]
    assert [r.reward for r in results] == pytest.approx([1 / 3, 0.0, 1 / 3])
    assert [bool(r.info["invalid"]) for r in results] == [False] * 3 and results[-1].info["success"]
    assert results[0].observation.summary == f"So far it is {a}."


@pytest.mark.parametrize("options", [{"say": "it"}, {"scans": "test"}, {"partial": 1}, {"max_shift": -1}])
def test_a_wrong_option_is_said_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="visual/running_digits"):
        RunningDigits(**options)
