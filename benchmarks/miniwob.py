"""MiniWoB++ in one shared browser: its speed, its memory, and whether replays are the same.

    python benchmarks/miniwob.py [--json] [--tasks 125] [--seconds 10] [--scale 3]

- determinism: tasks of which an episode of six random actions, played twice, is the same to the pixel.
- reset_ms, step_ms: of one environment, median over the tasks; a step is an action, waited for, with its
  image of 480×630 at scale 3, the default. Targets: 100 and 35.
- steps_per_s: clicks at random places in 1, 4 and 8 environments at once, threads of one process, on tasks
  that such clicks do not end: mail, calendar, shops; a reset after 30 steps. Target: 130 at 8.
- short_steps_per_s: the same on all tasks, most of which end at the first or second click. Resets are not
  counted as steps, but their time is, so this is a figure of resets more than of steps.
- processor_ms: of a reset and of a step on all cores, by process, and a step's by its parts: what another
  program on the machine changes least. From episodes of eight tasks that are played again and again, the
  least of each; N cores give at most N × 1000 / milliseconds steps a second. The parts: logic (the action,
  waiting for the page, the verdict), drawing (frames), encoding (what a changed image costs to copy, to
  write as PNG and to read), hashing (xxh3 of the image) and transport (to another process of this machine and
  back: pickled and read again).
- memory_mib: of all the browser's processes (proportional set size), and what each further environment adds.

Peers, measured on a machine of this class (2 cores): BrowserGym 0.14.3 takes 2.4 s a reset and 650 ms a step,
626 MiB an environment; Farama's miniwob 1.1.0 67 ms, 48 ms and 420 MiB, with 119 of 128 tasks the same.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from vlrl.environment.host.frames import dumps, loads
from vlrl.environment.observe import digest_of
from vlrl.envs.gui.actions import Action, Click, Drag, Key, Scroll, TypeText, Wait
from vlrl.envs.gui.web.chromium import browser
from vlrl.envs.gui.web.chromium.drawing import Drawing
from vlrl.envs.gui.web.chromium.pipe import Deadline
from vlrl.envs.gui.web.miniwob.pages import MiniWob
from vlrl.process.json_stdout import parse_with_json, print_figures
from vlrl.protocols import Observation

TARGETS = {"reset_ms": 100.0, "step_ms": 35.0, "steps_per_s": 130.0}
AT_ONCE = (1, 4, 8)
EPISODE_STEPS = 30
COST_STEPS = 20
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


def browsers_s() -> Counter[str]:
    """Time of this process's browsers on all cores, by kind of process."""
    spent: Counter[str] = Counter()
    for pid in browser_pids():
        command = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace")
        found = re.search(r"--type=([\w-]+)", command)
        kind = found[1] if found else "browser"
        for task in Path(f"/proc/{pid}/task").iterdir():
            spent[kind] += int((task / "schedstat").read_text().split()[0]) / 1e9
    return spent


@contextmanager
def measured(spent: Counter[str]) -> Iterator[None]:
    """Add the processor time of what is done within, by kind of process, but not of looking at the clocks."""
    before, begin = browsers_s(), time.process_time()
    yield
    spent["python"] += time.process_time() - begin
    spent.update(browsers_s() - before)


def played_s(world: MiniWob, name: str) -> tuple[Counter[str], Counter[str]]:
    """Processor time of an episode's reset and of its steps, by process."""
    reset: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    with measured(reset):
        world.reset({"name": name}, 1)
    rng = np.random.default_rng(7)
    with measured(steps):
        for _ in range(COST_STEPS):
            world.perform(Click(somewhere(rng, world)))
    return reset, steps


def parts_s(world: MiniWob, name: str) -> Counter[str]:
    """Processor time of drawing and of encoding in an episode's steps, apart from the reset."""
    spent: Counter[str] = Counter()
    world.reset({"name": name}, 1)
    rng = np.random.default_rng(7)
    with ExitStack() as stack:
        for part, method in (("drawing", "frame"), ("encoding", "_read")):
            stack.enter_context(mock.patch.object(Drawing, method, _timed(part, method, spent)))
        for _ in range(COST_STEPS):
            world.perform(Click(somewhere(rng, world)))
    return spent


def _timed(part: str, name: str, spent: Counter[str]) -> Callable[..., Any]:
    method = getattr(Drawing, name)

    def call(drawing: Drawing, deadline: Deadline) -> Any:
        taken: Counter[str] = Counter()
        with measured(taken):
            result = method(drawing, deadline)
        spent[part] += taken.total()
        return result

    return call


def least_s(call: Callable[[], object]) -> float:
    """Processor time of a call in this thread, the least of 50."""
    times = []
    for _ in range(50):
        begin = time.thread_time()
        call()
        times.append(time.thread_time() - begin)
    return min(times)


def costs_ms(world: MiniWob, rounds: int) -> dict[str, Any]:
    """What a reset and a step take on all cores: means over tasks, of each task its round of least time."""
    found: dict[str, Counter[str]] = {"reset": Counter(), "step": Counter(), "parts": Counter()}
    for name in LONG:
        episodes = [played_s(world, name) for _ in range(rounds)]
        parts = [parts_s(world, name) for _ in range(rounds)]
        found["reset"] += min((reset for reset, _ in episodes), key=Counter.total)
        found["step"] += min((steps for _, steps in episodes), key=Counter.total)
        for part in ("drawing", "encoding"):
            found["parts"][part] += min(each[part] for each in parts)
    shown = Observation(images=[world.show().pixels])
    num_steps = len(LONG) * COST_STEPS
    parts_of_step = {
        "logic": (found["step"].total() - found["parts"].total()) / num_steps,
        **{part: spent / num_steps for part, spent in found["parts"].items()},
        "hashing": least_s(lambda: digest_of(shown)),
        "transport": least_s(lambda: loads(bytearray().join(dumps(shown)))),
    }
    return {
        "reset": {kind: round(1e3 * spent / len(LONG), 1) for kind, spent in found["reset"].most_common()},
        "step": {kind: round(1e3 * spent / num_steps, 2) for kind, spent in found["step"].most_common()},
        "reset_all": round(1e3 * found["reset"].total() / len(LONG), 1),
        "step_all": round(1e3 * found["step"].total() / num_steps, 2),
        "step_parts": {part: round(1e3 * spent, 2) for part, spent in parts_of_step.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=125, help="how many of them, by the alphabet")
    parser.add_argument("--seconds", type=float, default=10.0, help="measured for each number at once")
    parser.add_argument("--scale", type=int, default=3, help="pixels of the image to a pixel of the page")
    parser.add_argument("--rounds", type=int, default=4, help="of processor time; the least counts")
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
    found["processor_ms"] = costs_ms(worlds[0], args.rounds)
    all_mib = memory_mib()
    found["memory_mib"] = {"one": round(one_mib), "each_more": round((all_mib - one_mib) / (len(worlds) - 1))}
    for world in worlds:
        world.close()
    print_figures(found, args.json)


if __name__ == "__main__":
    main()
