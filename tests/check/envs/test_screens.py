"""Screens under the same questions, in every grammar: nonsense is answered, and places follow the image."""

from __future__ import annotations

import pytest
from toy_episodes import TOY

from vlrl.check.envs.agents import heeds_how_it_is_shown, oracle
from vlrl.check.envs.conduct import JUNK, answers_junk
from vlrl.check.envs.episodes import Request, Watched
from vlrl.check.envs.run import bench_env, check_env
from vlrl.envs.gui.codecs.open import CODECS


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_in_every_grammar_nonsense_is_answered_and_the_oracle_hits(codec: str) -> None:
    form = "mobile" if "mobile" in codec or codec == "androidworld" else "desktop"
    request = Request(TOY, {"codec": codec, "form": form}, {"kind": "click"}, episodes=4)
    with Watched(request) as env:
        assert answers_junk(env, request).status == "ok", answers_junk(env, request)
        assert oracle(env, request).status == "ok", oracle(env, request)
        assert heeds_how_it_is_shown(env, request).status == "ok"


def test_a_screen_keeps_the_contract() -> None:
    result = check_env(Request(TOY, episodes=4))
    assert result["ok"]
    assert {check["name"]: check["status"] for check in result["checks"] if check["status"] != "ok"} == {
        "its library's checker": "info"
    }
    assert any("pyautogui" in text for text in JUNK.values())


def test_a_screen_is_measured() -> None:
    measured = bench_env(Request(TOY, {"max_steps": 50}), 0.05)
    assert measured["observation"] == ["320×240"]
    assert measured["steps_per_second"] > 0
