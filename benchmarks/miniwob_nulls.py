"""What agents that do not look earn in MiniWoB++: the table of docs/gui_web.md.

    python benchmarks/miniwob_nulls.py [--json] [--episodes 8] [--at-once 4] [--tasks …] [--write-docs]

- submit: presses the button that says Submit, else the first one; gives up where there is none.
- centre: clicks the middle of the task's page, again and again, 10 times at most.
- random: clicks anywhere below the goal, 10 times at most.

Of every task and agent: the share of episodes with success, the share with a raw reward above 0 (which
counted as success before there were thresholds), and the mean raw reward.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np

from vlrl.envs.gui.actions import Action, Click, Finish
from vlrl.envs.gui.web.miniwob.marks import FULL_MARKS, MARKS
from vlrl.envs.gui.web.miniwob.pages import MiniWob, task_names
from vlrl.process.json_stdout import parse_with_json, print_json

MOST_CLICKS = 10
DOCS = Path(__file__).resolve().parents[1] / "docs" / "gui_web.md"
BEGIN, END = "<!-- nulls: benchmarks/miniwob_nulls.py --write-docs -->\n", "<!-- end of nulls -->\n"
Agent = Callable[[MiniWob, np.random.Generator, int], Action]


class Earned(NamedTuple):
    """Shares of several episodes, and their mean reward."""

    success: float
    above_zero: float
    reward: float


def submit(world: MiniWob, rng: np.random.Generator, step: int) -> Action:
    buttons = [element for element in world.elements() if element.role == "button"]
    buttons.sort(key=lambda element: "submit" not in element.name.lower())
    if step or not buttons:
        return Finish(success=False)
    x0, y0, x1, y1 = buttons[0].box
    return Click(((x0 + x1) // 2, (y0 + y1) // 2))


def centre(world: MiniWob, rng: np.random.Generator, step: int) -> Action:
    width, height = world.size
    return Click((width // 2, height * 13 // 21))  # of the part below the goal's 50 pixels of 210


def at_random(world: MiniWob, rng: np.random.Generator, step: int) -> Action:
    width, height = world.size
    return Click((int(rng.integers(width)), int(rng.integers(height * 5 // 21, height))))


NULLS: Mapping[str, Agent] = {"submit": submit, "centre": centre, "random": at_random}


def episode(world: MiniWob, name: str, agent: Agent, seed: int) -> tuple[bool, float]:
    """(success, raw reward) of one."""
    world.reset({"name": name}, seed)
    rng = np.random.default_rng(seed)
    for step in range(MOST_CLICKS):
        action = agent(world, rng, step)
        world.perform(action)
        if world.verdict().ended or isinstance(action, Finish):
            break
    verdict = world.verdict()
    return verdict.success, verdict.reward or 0.0


def measured(names: Sequence[str], episodes: int, at_once: int) -> dict[str, dict[str, Earned]]:
    """Task → agent → what it earned."""
    worlds: SimpleQueue[MiniWob] = SimpleQueue()
    for _ in range(at_once):
        worlds.put(MiniWob())

    def play(name: str) -> dict[str, Earned]:
        world = worlds.get()
        try:
            return {null: earned(world, name, agent) for null, agent in NULLS.items()}
        finally:
            worlds.put(world)

    def earned(world: MiniWob, name: str, agent: Agent) -> Earned:
        played = [episode(world, name, agent, seed) for seed in range(episodes)]
        rewards = np.array([reward for _, reward in played])
        won = float(np.mean([success for success, _ in played]))
        return Earned(won, float(np.mean(rewards > 0)), round(float(rewards.mean()), 3))

    with ThreadPoolExecutor(at_once) as pool:
        found = dict(zip(names, pool.map(play, names), strict=True))
    while not worlds.empty():
        worlds.get().close()
    return found


def table(found: Mapping[str, Mapping[str, Earned]], episodes: int) -> str:
    """The docs' table: tasks that pay some null, or that have a threshold of their own."""
    shown = {
        name: nulls
        for name, nulls in found.items()
        if name in MARKS or any(earned.above_zero for earned in nulls.values())
    }
    lines = [
        f"Of {len(found)} tasks, {episodes} episodes each, {len(found) - len(shown)} never pay any of the "
        "three anything. Of the others, the share of successes (and of raw rewards above 0) / the mean raw "
        "reward:",
        "",
        "| task | success from | " + " | ".join(NULLS) + " |",
        "|---" * (2 + len(NULLS)) + "|",
    ]
    for name, nulls in shown.items():
        cells = [f"{e.success:.2f} ({e.above_zero:.2f}) / {e.reward:.2f}" for e in nulls.values()]
        lines.append(f"| {name} | {MARKS.get(name, FULL_MARKS):g} | {' | '.join(cells)} |")
    means = [np.mean([nulls[null] for nulls in found.values()], axis=0) for null in NULLS]
    cells = [f"{won:.2f} ({above:.2f}) / {reward:.2f}" for won, above, reward in means]
    return "\n".join([*lines, f"| **all {len(found)}** | | {' | '.join(cells)} |"]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=8, help="of every task and agent")
    parser.add_argument("--at-once", type=int, default=4, help="environments")
    parser.add_argument("--tasks", nargs="*", help="names; all")
    parser.add_argument("--write-docs", action="store_true", help="put the table into docs/gui_web.md")
    args = parse_with_json(parser)
    found = measured(args.tasks or task_names(), args.episodes, args.at_once)
    if args.write_docs:
        before, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
        after = rest.split(END)[1]
        DOCS.write_text(f"{before}{BEGIN}{table(found, args.episodes)}{END}{after}", encoding="utf-8")
    if args.json:
        print_json({name: {n: e._asdict() for n, e in nulls.items()} for name, nulls in found.items()})
    else:
        print(table(found, args.episodes))


if __name__ == "__main__":
    main()
