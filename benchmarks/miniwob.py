"""MiniWoB++ in one shared browser: its speed, its memory, and whether replays are the same.

    python benchmarks/miniwob.py [--json] [--tasks 125] [--seconds 10] [--scale 3]

- determinism: tasks of which an episode of six random actions, played twice, is the same to the pixel.
- reset_ms, step_ms: of one environment, median over the tasks; a step is an action, waited for, with its
  image of 480×630 at scale 3, the default. Targets: 100 and 35.
- steps_per_s: clicks at random places in 1, 4 and 8 environments at once, threads of one process, on tasks
  that such clicks do not end: mail, calendar, shops; a reset after 30 steps. Target: 100 at 8.
- short_steps_per_s: the same on all tasks, most of which end at the first or second click. Resets are not
  counted as steps, but their time is, so this is a figure of resets more than of steps.
- step_processor_ms: time of a step on all cores, resets apart: what another program on the machine changes
  least; so many cores give at most so many seconds for steps.
- memory_mib: of all the browser's processes (proportional set size), and what each further environment adds.

Peers, measured on a machine of this class (2 cores): BrowserGym 0.14.3 takes 2.4 s a reset and 650 ms a step,
626 MiB an environment; Farama's miniwob 1.1.0 67 ms, 48 ms and 420 MiB, with 119 of 128 tasks the same.
"""

from __future__ import annotations

import argparse
import os
import statistics
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from vlrl.envs.gui.actions import Action, Click, Drag, Key, Scroll, TypeText, Wait
from vlrl.envs.gui.web.chromium import browser
from vlrl.envs.gui.web.miniwob.pages import MiniWob
from vlrl.process.json_stdout import parse_with_json, print_figures

TARGETS = {"reset_ms": 100.0, "step_ms": 35.0, "steps_per_s": 100.0}
AT_ONCE = (1, 4, 8)
EPISODE_STEPS = 30
LONG = (
    *("book-flight", "click-tab-2-hard", "daily-calendar", "email-inbox"),
    *("guess-number", "order-food", "social-media", "terminal"),
)


def somewhere(rng: np.random.Generator, world: MiniWob) -> tuple[int, int]:
    """Random place on the page, below the words that say what is to be done."""
    width, height = world.size
    return int(rng.integers(width)), int(rng.integers(height * 5 // 21, height))


def some_actions(seed: int, world: MiniWob) -> Sequence[Action]:
    rng = np.random.default_rng(seed)
    a, b, c, d = (somewhere(rng, world) for _ in range(4))
    return Click(a), TypeText("ab c"), Drag((b, c)), Key(("tab",)), Scroll(0, 90, d), Wait(700)


def played(world: MiniWob, name: str) -> list[bytes]:
    images = [world.reset({"name": name}, 5).pixels.tobytes()]
    for action in some_actions(5, world):
        images.append(world.perform(action).pixels.tobytes())
        if world.verdict().ended:
            break
    return images


def determinism(world: MiniWob, names: Sequence[str]) -> dict[str, Any]:
    different = [name for name in names if played(world, name) != played(world, name)]
    return {"same": len(names) - len(different), "of": len(names), "different": different}


def latencies(world: MiniWob, names: Sequence[str]) -> dict[str, float]:
    resets, steps = [], []
    rng = np.random.default_rng(0)
    for name in names:
        begin = time.perf_counter()
        world.reset({"name": name}, 1)
        resets.append(time.perf_counter() - begin)
        for _ in range(4):
            action = Click(somewhere(rng, world))
            begin = time.perf_counter()
            world.perform(action)
            steps.append(time.perf_counter() - begin)
    return {
        "reset_ms": round(1e3 * statistics.median(resets), 1),
        "step_ms": round(1e3 * statistics.median(steps), 1),
        "reset_ms_min": round(1e3 * min(resets), 1),
        "step_ms_min": round(1e3 * min(steps), 1),
    }


def throughput(worlds: Sequence[MiniWob], seconds: float, names: Sequence[str]) -> float:
    start = threading.Barrier(len(worlds) + 1)

    def run(number: int, world: MiniWob) -> int:
        rng, count, seed = np.random.default_rng(number), 0, 1000 * number
        world.reset({"name": names[seed % len(names)]}, seed)
        start.wait()
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            world.perform(Click(somewhere(rng, world)))
            count += 1
            if world.verdict().ended or count % EPISODE_STEPS == 0:
                seed += 1
                world.reset({"name": names[seed % len(names)]}, seed)
        return count

    with ThreadPoolExecutor(len(worlds)) as pool:
        jobs = [pool.submit(run, number, world) for number, world in enumerate(worlds)]
        start.wait()
        begin = time.perf_counter()
        total = sum(job.result() for job in jobs)
        return total / (time.perf_counter() - begin)


def browser_pids() -> list[int]:
    """Process ids of all browsers of this process and of their children."""
    pids = [shared.pid for shared in browser.running()]
    for pid in pids:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            pids += map(int, children.read_text().split())
    return pids


def memory_mib() -> float:
    kib = 0
    for pid in browser_pids():
        smaps = Path(f"/proc/{pid}/smaps_rollup").read_text()
        kib += sum(int(line.split()[1]) for line in smaps.splitlines() if line.startswith("Pss:"))
    return kib / 1024


def processor_s() -> float:
    """Time of this process and its browsers on all cores."""
    ticks = 0
    for pid in browser_pids():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


def cost_ms(world: MiniWob, name: str, num_steps: int) -> float:
    """Processor time of a step."""
    world.reset({"name": name}, 1)
    width, height = world.size
    begin = processor_s()
    for number in range(num_steps):
        world.perform(Click((width // 5 + number % (width // 2), height * 4 // 5)))
    return round(1e3 * (processor_s() - begin) / num_steps, 1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=125, help="how many of them, by the alphabet")
    parser.add_argument("--seconds", type=float, default=10.0, help="measured for each number at once")
    parser.add_argument("--scale", type=int, default=3, help="pixels of the image to a pixel of the page")
    args = parse_with_json(parser)
    worlds = [MiniWob(scale=args.scale) for _ in range(max(AT_ONCE))]
    names = worlds[0].tasks[: args.tasks]
    found: dict[str, Any] = {"targets": TARGETS, "load": round(os.getloadavg()[0], 1)}
    found["determinism"] = determinism(worlds[0], names)
    found |= latencies(worlds[0], names)
    one_mib = memory_mib()
    for figure, played_names in (("steps_per_s", LONG), ("short_steps_per_s", worlds[0].tasks)):
        rates = {n: throughput(worlds[:n], args.seconds, played_names) for n in AT_ONCE}
        found[figure] = {n: round(rate, 1) for n, rate in rates.items()}
    found["step_processor_ms"] = cost_ms(worlds[0], "click-tab-2", 100)
    all_mib = memory_mib()
    found["memory_mib"] = {"one": round(one_mib), "each_more": round((all_mib - one_mib) / (len(worlds) - 1))}
    for world in worlds:
        world.close()
    print_figures(found, args.json)


if __name__ == "__main__":
    main()
