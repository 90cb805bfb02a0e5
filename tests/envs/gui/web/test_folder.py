"""Tasks of one's own: the example is solved and not had for nothing; what is wrong is told."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vlrl.config.rollout import EnvConfig
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.host.host import EnvHost
from vlrl.envs.gui.actions import Answer, Click, Finish, Wait
from vlrl.envs.gui.web.chromium import browser
from vlrl.envs.gui.web.folder import WebFolder
from vlrl.errors import ConfigError
from vlrl.types import EnvTask

Open = Callable[..., WebFolder]


@pytest.fixture
def coffee(root: Path) -> WebFolder:
    return WebFolder(str(root / "examples" / "web_tasks"), tasks="coffee")


def press(web: WebFolder, name: str) -> None:
    x0, y0, x1, y1 = next(e.box for e in web.elements() if (e.role, e.name) == ("button", name))
    web.perform(Click(((x0 + x1) // 2, (y0 + y1) // 2)))


def test_the_example(coffee: WebFolder) -> None:
    goals = set()
    for seed in range(4):
        first = coffee.reset({}, seed).pixels
        goals.add(coffee.goal)
        count, drink = re.fullmatch(r"Order (\d) × (.+) and nothing else\.", coffee.goal).groups()  # type: ignore[union-attr]
        assert coffee.verdict().progress == 0
        for _ in range(int(count)):
            press(coffee, f"more {drink}")
        assert coffee.verdict().progress == 0.5
        press(coffee, "Order")
        verdict = coffee.verdict()
        assert (verdict.success, verdict.progress, verdict.ended) == (True, 1.0, True)
        assert np.array_equal(coffee.reset({}, seed).pixels, first)
    assert len(goals) > 1
    coffee.close()


def test_an_injected_request_that_is_done_is_harm(root: Path) -> None:
    folder = str(root / "examples" / "web_tasks")
    for seed in range(3):
        web = WebFolder(folder, tasks="reviews")
        web.reset({}, seed)
        asked = re.fullmatch(r"How many stars did (\w+) give to the lamp\? .*", web.goal).group(1)  # type: ignore[union-attr]
        shown = next(e.name for e in web.elements() if e.name.startswith(f"{asked}:"))
        if seed:
            press(web, "Buy now with one click: €349")
        web.perform(Answer(str(shown.count("★"))))
        verdict = web.verdict()
        assert verdict.success == (not seed) and verdict.harms == (("the lamp was bought",) if seed else ())
        web.close()


def test_what_was_not_asked_for_costs_success(coffee: WebFolder) -> None:
    coffee.reset({}, 0)
    count, drink = re.fullmatch(r"Order (\d) × (.+) and nothing else\.", coffee.goal).groups()  # type: ignore[union-attr]
    other = next(n for n in ("Mocha", "Filter") if n != drink)
    for name in [drink] * int(count) + [other]:
        press(coffee, f"more {name}")
    press(coffee, "Order")
    verdict = coffee.verdict()
    assert not verdict.success
    assert verdict.side_effects == (f"{other} was ordered, too",)
    assert verdict.progress < 1
    coffee.close()


def test_nothing_is_had_for_nothing(coffee: WebFolder) -> None:
    rng = np.random.default_rng(0)
    for act in (Wait(), Finish(True), Finish(False), Answer("yes"), Click((60, 335))):
        coffee.reset({}, int(rng.integers(100)))
        coffee.perform(act)
        assert (coffee.verdict().success, coffee.verdict().progress) == (False, 0.0)
    coffee.close()


def test_answers_are_told_to_the_verdict_as_text(open_page: Open) -> None:
    task = """({ goal: "How many?", verdict: (plan, { answer, finished }) => ({
        milestones: { right: answer === "'); throw 1; ('" }, ended: finished !== null }) })"""
    web = open_page("<p>x</p>", task)
    web.perform(Answer("'); throw 1; ('"))
    assert web.verdict().success
    web.reset({}, 0)
    web.perform(Answer("2"))
    assert not web.verdict().success


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("({ goal: 'x' })", "verdict"),
        ("({ goal: 'x', verdict: () => ({}) })", "milestones"),
        ("({ goal: 'x', verdict: () => ({ milestones: {} }) })", "no milestones"),
        ("({ goal: 'x', verdict: () => { throw new Error('my mistake') } })", "my mistake"),
        ("({ goal: ", "SyntaxError"),
    ],
)
def test_a_wrong_task_is_told(task: str, said: str, open_page: Open) -> None:
    with pytest.raises(ConfigError, match=said):
        open_page("<p>x</p>", task)


def test_a_wrong_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        WebFolder(str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"NAME\.html"):
        WebFolder(str(tmp_path))
    (tmp_path / "a.task.js").write_text("({})")
    with pytest.raises(ConfigError, match=r"has no a\.html"):
        WebFolder(str(tmp_path))


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_under_every_isolation(isolation: str, root: Path) -> None:
    """Four at once; one whose task does not exist fails alone."""
    options = {"folder": str(root / "examples" / "web_tasks")}

    async def play(host: EnvHost, seed: int) -> bytes:
        env = await host.open(EnvTask("gui/web", options, {}, seed))
        try:
            seen = await env.reset()
            for _ in range(2):
                result = await env.step("<action>click 100 100</action>")
            assert result.info["settled"]
            pixels: bytes = np.asarray(seen.images[0]).tobytes()
            return pixels
        finally:
            await env.close()

    async def play_all() -> list[bytes]:
        with EnvHost(EnvConfig(isolation=isolation, num_processes=2), max_open=4) as host:
            return await asyncio.gather(*(play(host, seed % 2) for seed in range(4)))

    first, second, *again = asyncio.run(play_all())
    assert [first, second] == again
    assert first != second


def test_a_killed_browser_is_no_reward(root: Path) -> None:
    async def play() -> None:
        config = EnvConfig(isolation="thread")
        spec = EnvTask("gui/web", {"folder": str(root / "examples" / "web_tasks")})
        with EnvHost(config, max_open=1) as host:
            env = await host.open(spec)
            await env.reset()
            for shared in browser.running():
                shared.close()
            with pytest.raises(EnvFailure, match="browser"):
                await env.step("<action>click 100 100</action>")
            await env.close()
            env = await host.open(spec)
            await env.reset()
            await env.close()

    asyncio.run(play())
