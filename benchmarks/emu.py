"""How fast the emulated desktop is on one core: steps with their whole screenshot, resets, snapshots.

    python benchmarks/emu.py --json

The steps are a mix drawn from a seed: clicks on widgets, right clicks, menus, typing, chords, wheel, drags of
windows and of text, moves; every step makes the whole screenshot, [height, width, 3] uint8. They are planned
in one run and timed in others, which have to give the same pixels; of the rounds the median counts. Floors:
2,000 steps/s at 640x480, 1,000 at 1280x800, 5 ms a reset, 50 µs a snapshot and restore. Time is that of the
core that this process had, so that others at work on the machine count less; *_wall is the clock's.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import time
from collections import Counter

import numpy as np

from vlrl.envs.gui.actions import Action, Click, Drag, Key, Move, Scroll, TypeText
from vlrl.envs.gui.emu.desktop import Desktop
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.envs.gui.emu.windows.scene import BAR
from vlrl.process.json_stdout import parse_with_json, print_json

SIZES = {"640x480": (640, 480), "1280x800": (1280, 800)}
EPISODE = 60
"""Steps, then another task with other looks."""
WORDS = ("harbour ", "seven", "blue folder\n", "Tuesday ", "x")
CHORDS = ("ctrl+a", "ctrl+z", "tab", "down", "shift+right", "escape", "backspace", "ctrl+v", "end")
USED = {"button", "option", "checkbox", "radio", "slider", "menuitem", "textbox", "combobox", "tab", "row"}


def draw_action(desktop: Desktop, rng: np.random.Generator) -> Action:
    """What somebody who tries everything might do next."""
    width, height = desktop.size
    anywhere = int(rng.integers(width)), int(rng.integers(height))
    pinned = pinned_apps(desktop)
    seen = [e for e in desktop.elements() if not e.states & {"hidden", "covered"} and e.name not in pinned]
    wanted = {"drag": {"heading"}, "menu": {"menuitem"}}
    kind = str(
        rng.choice(["click"] * 6 + ["type"] * 3 + ["key", "wheel", "drag", "menu"] * 2 + ["move", "right"])
    )
    targets = [e for e in seen if e.role in wanted.get(kind, USED) and e.name not in ("Close", "")]
    if not targets:
        return Click(anywhere)
    x0, y0, x1, y1 = targets[int(rng.integers(len(targets)))].box
    point = min((x0 + x1) // 2, width - 1), min((y0 + y1) // 2, height - 1)
    match kind:
        case "type":
            return TypeText(str(rng.choice(WORDS)))
        case "key":
            return Key(tuple(str(rng.choice(CHORDS)).split("+")))
        case "wheel":
            return Scroll(0, int(rng.integers(-2, 3)) * 60, point)
        case "drag":
            return Drag((point, anywhere))
        case "move":
            return Move(anywhere)
        case _:
            return Click(point, "right" if kind == "right" else "left")


def pinned_apps(desktop: Desktop) -> set[str]:
    """Apps that are in a bar and not open, which some families have: clicking them would be other work."""
    bar = desktop._scene.layer(desktop.world, BAR)
    return {p.widget.name for p in bar.view.placed if p.widget.id.startswith("app:")} if bar else set()


def desktop_of(size: tuple[int, int]) -> Desktop:
    backend = EmuEnv(size=size).backend
    assert isinstance(backend, Desktop)
    return backend


def plan(desktop: Desktop, seed: int) -> tuple[list[Action], str]:
    """Actions of an episode, and what its screens come to."""
    rng, digest = np.random.default_rng(seed), hashlib.sha256(desktop.reset({}, seed).pixels)
    actions = []
    for _ in range(EPISODE):
        actions.append(draw_action(desktop, rng))
        digest.update(desktop.perform(actions[-1]).pixels)
    return actions, digest.hexdigest()


def replayed(desktop: Desktop, seed: int, actions: list[Action]) -> str:
    digest = hashlib.sha256(desktop.reset({}, seed).pixels)
    for action in actions:
        digest.update(desktop.perform(action).pixels)
    return digest.hexdigest()


def steps_per_second(
    size: tuple[int, int], episodes: int, rounds: int
) -> tuple[float, float, bool, Counter[str]]:
    desktop = desktop_of(size)
    plans = [plan(desktop, seed) for seed in range(episodes)]
    same = all(
        replayed(desktop_of(size), seed, actions) == digest for seed, (actions, digest) in enumerate(plans)
    )
    rates, wall_rates = [], []
    for _ in range(rounds):
        spent = wall = 0.0
        for seed, (actions, _) in enumerate(plans):
            desktop.reset({}, seed)
            begin, wall_begin = time.process_time(), time.perf_counter()
            for action in actions:
                desktop.perform(action)
                desktop.verdict()
            spent += time.process_time() - begin
            wall += time.perf_counter() - wall_begin
        rates.append(episodes * EPISODE / spent)
        wall_rates.append(episodes * EPISODE / wall)
    kinds = Counter(type(action).__name__ for actions, _ in plans for action in actions)
    return statistics.median(rates), statistics.median(wall_rates), same, kinds


def reset_ms(size: tuple[int, int], count: int) -> float:
    """Seeds that were never seen: themes, fonts and texts are painted again."""
    desktop, spent = desktop_of(size), []
    for seed in range(10_000, 10_000 + count):
        begin = time.process_time()
        desktop.reset({}, seed)
        spent.append(1e3 * (time.process_time() - begin))
    return statistics.median(spent)


def snapshot_restore_us(size: tuple[int, int], count: int) -> float:
    desktop = desktop_of(size)
    desktop.reset({}, 0)
    begin = time.perf_counter()
    for _ in range(count):
        desktop.restore(desktop.snapshot())
    return 1e6 * (time.perf_counter() - begin) / count


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    options = parse_with_json(parser)
    figures: dict[str, object] = {"load_average": os.getloadavg()[0]}
    for name, size in SIZES.items():
        rate, wall_rate, same, kinds = steps_per_second(size, options.episodes, options.rounds)
        figures[name] = {
            "steps_per_second": round(rate),
            "steps_per_second_wall": round(wall_rate),
            "replays_identical": same,
            "reset_ms": round(reset_ms(size, 3 * options.episodes), 2),
            "snapshot_restore_us": round(snapshot_restore_us(size, 1000), 2),
        }
        figures["actions"] = dict(kinds)
    if options.json:
        print_json(figures)
    else:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
