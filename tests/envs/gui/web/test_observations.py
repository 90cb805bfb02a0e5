"""A page with numbers on what can be used, and as a tree."""

from __future__ import annotations

import re

import pytest

from vlrl.envs.gui.web.env import MiniWobEnv


@pytest.mark.parametrize("observe", ["marks", "tree", "both"])
def test_an_oracle_wins_that_names_numbers(observe: str) -> None:
    env = MiniWobEnv(observe=observe)
    try:
        for task in ("click-button", "click-link", "click-checkboxes", "login-user"):
            shown = env.reset({"name": task}, 1)
            assert bool(shown.images) == (observe != "tree")
            assert ("[1] " in shown.text) == (observe != "marks") and env.view.marks
            said, over = [], False
            while not over:
                said.append(env.oracle())
                result = env.step(said[-1])
                over = result.terminated or result.truncated
            assert result.info["success"], (task, said)
            assert re.search(r"click \[[0-9]+\]", " ".join(said)), said
    finally:
        env.close()
