"""What a real desktop costs: start, steps, memory, end; and whether a screenshot is ever stale.

    python benchmarks/x11.py [--json] [--desktops 32] [--launches 100] [--seconds 5]

A cold reset boots a desktop and shows a task on it; one from the pool takes a desktop that was booted before.
A click goes to the middle of an app's window, of six apps in turn; it has settled when nothing on the desktop
works any longer, which takes 30 ms of quiet to see: the floor of every step. A launch is stale if the screen
shown after it is not the one 500 ms later. Memory is what the machine has less of with all desktops up, each
with one of the apps.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

from vlrl.envs.gui.actions import Action, Click, OpenApp, Wait
from vlrl.envs.gui.x11.backend import X11Backend
from vlrl.envs.gui.x11.desktop import Desktop, Machine
from vlrl.envs.gui.x11.settle import QUIET_S
from vlrl.envs.gui.x11.tasks import TASKS
from vlrl.process.json_stdout import parse_with_json, print_json

TARGETS = {
    "cold_reset_ms": 500,
    "pool_reset_ms": 20,
    "click_ms": 60,
    "stale": 0,
    "memory_mib": 4096,
    "steps_per_second": 300,
    "left_processes": 0,
}
APPS = ("mousepad", "galculator", "pcmanfm", "xterm", "gpicview", "mtpaint")
LATER_S = 0.5


def timed_ms(function: Callable[[], object]) -> float:
    begin = time.perf_counter()
    function()
    return (time.perf_counter() - begin) * 1000


def resets(pool: int, count: int) -> list[float]:
    backend = X11Backend(Machine(), TASKS, pool)
    names, times = sorted(TASKS), []
    for seed in range(count):
        if pool:
            time.sleep(2)  # an episode, in which the pool boots the next one
        times.append(timed_ms(partial(backend.reset, {"name": names[seed % len(names)]}, seed)))
    backend.close()
    return times


def clicks(desktop: Desktop, seed: int) -> Iterator[Action]:
    """Yield clicks in one of the apps."""
    desktop.perform(OpenApp(APPS[seed % len(APPS)]))
    while not desktop.windows():  # on a busy machine it takes longer than a desktop waits for
        desktop.perform(Wait(100))
    x0, y0, x1, y1 = desktop.windows()[-1].box
    rng = np.random.default_rng(seed)
    while True:
        x, y = rng.uniform(0.25, 0.75, 2)
        yield Click((round(x0 + x * (x1 - x0)), round(y0 + y * (y1 - y0))))


def click_times(count: int) -> list[float]:
    times = []
    for seed in range(len(APPS)):
        desktop = Desktop(Machine())
        actions = clicks(desktop, seed)
        next(actions)
        times += [timed_ms(partial(desktop.perform, next(actions))) for _ in range(count)]
        desktop.close()
    return times


def stale_launches(count: int) -> tuple[int, list[float]]:
    """How many of the launches showed a screen that was not the last, and the milliseconds they took."""
    stale, times, done = 0, [], 0
    while done < count:
        desktop = Desktop(Machine())
        for app in APPS[: count - done]:
            begin = time.perf_counter()
            shown = desktop.perform(OpenApp(app))
            times.append((time.perf_counter() - begin) * 1000)
            time.sleep(LATER_S)
            stale += not np.array_equal(shown.pixels, desktop.look().pixels)
            done += 1
        desktop.close()
    return stale, times


def together(count: int, seconds: float) -> dict[str, float]:
    """Memory, steps and the end of several desktops at once."""
    before = available_mib()
    with ThreadPoolExecutor(count) as pool:
        begin = time.perf_counter()
        desktops = list(pool.map(lambda _: Desktop(Machine()), range(count)))
        boot_s = time.perf_counter() - begin
        streams = list(pool.map(clicks, desktops, range(count)))
        firsts = list(
            pool.map(lambda pair: pair[0].perform(next(pair[1])), zip(desktops, streams, strict=True))
        )
        memory = before - available_mib()
        end = time.perf_counter() + seconds

        def run(desktop: Desktop, actions: Iterator[Action]) -> int:
            steps = 0
            while time.perf_counter() < end:
                desktop.perform(next(actions))
                steps += 1
            return steps

        steps = sum(pool.map(run, desktops, streams))
    pids = [pid for desktop in desktops for pid in desktop.processes()]
    teardown_ms = timed_ms(lambda: [desktop.close() for desktop in desktops])
    return {
        "desktops": len(firsts),
        "boot_s": round(boot_s, 2),
        "memory_mib": round(memory),
        "steps_per_second": round(steps / seconds, 1),
        "teardown_ms": round(teardown_ms),
        "left_processes": sum(Path(f"/proc/{pid}").exists() for pid in pids),
    }


def available_mib() -> float:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--desktops", type=int, default=32, help="desktops at once")
    parser.add_argument("--launches", type=int, default=100, help="app launches looked at twice")
    parser.add_argument("--repeats", type=int, default=10, help="resets of each kind; clicks in each app")
    parser.add_argument("--seconds", type=float, default=5.0, help="of stepping all desktops")
    args = parse_with_json(parser)
    stale, launches = stale_launches(args.launches)
    found: dict[str, float] = {
        "cold_reset_ms": round(statistics.median(resets(0, args.repeats)), 1),
        "pool_reset_ms": round(statistics.median(resets(1, args.repeats)), 1),
        "click_ms": round(statistics.median(click_times(args.repeats)), 1),
        "floor_ms": QUIET_S * 1000,
        "launch_ms": round(statistics.median(launches), 1),
        "launches": len(launches),
        "stale": stale,
        **together(args.desktops, args.seconds),
    }
    if args.json:
        print_json({**found, "targets": TARGETS})
        return
    for name, value in found.items():
        print(f"{name:18}{value:>10}{f'   target {TARGETS[name]}' if name in TARGETS else ''}")


if __name__ == "__main__":
    main()
