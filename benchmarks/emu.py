"""How fast the emulated desktop is on one core: steps with their whole screenshot, resets, snapshots.

    python benchmarks/emu.py --json

The steps are a mix drawn from a seed: clicks on widgets, right clicks, menus, typing, chords, wheel, drags of
windows and of text, moves; every step makes the whole screenshot, [height, width, 3] uint8. They are planned
in one run and timed in others, which have to give the same pixels; of the rounds the median counts. Asked:
4,000 steps/s at 640x480, 2,000 at 1280x800, 5 ms a reset, 50 µs a snapshot and restore. Time is that of the
core that this process had, so that others at work on the machine count less; *_wall is the clock's. A
screenshot is let go when the next one has come; *_kept keeps all of an episode, which copies each as a whole.

Neighbours on the same core and caches slow a process down in its own time, too: `*_undisturbed` takes the
fastest round of each step. `step_us` is what a step consists of, from rounds of its own: logic (with a look
at what the oracle would do), layout, painting, the copy that is the screenshot, the verdict. Nothing is
hashed or encoded in a step; for that and for the way to the policy see emu_pixels.py.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import time
from collections import Counter, defaultdict
from typing import Any, NamedTuple

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
PARTS = {
    "logic": "perform",
    "layout": "layers",
    "painting": "show",
    "screenshot": "_show",
    "verdict": "verdict",
}
"""Part of a step → the method that does it."""
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


def replayed(desktop: Desktop, seed: int, actions: list[Action], planned: str) -> bool:
    """Whether the screens are the same again."""
    digest = hashlib.sha256(desktop.reset({}, seed).pixels)
    for action in actions:
        digest.update(desktop.perform(action).pixels)
    return digest.hexdigest() == planned


class Rates(NamedTuple):
    """Steps a second: by the time of the core, by that of each step's fastest round, and by the clock."""

    core: float
    undisturbed: float
    wall: float


def steps_per_second(
    size: tuple[int, int], plans: list[list[Action]], rounds: int, keeps: bool = False
) -> Rates:
    desktop, spent, walls = desktop_of(size), [], []
    for _ in range(rounds):
        steps, wall = [], 0.0
        for seed, actions in enumerate(plans):
            kept = [desktop.reset({}, seed)]
            wall -= time.perf_counter()
            for action in actions:
                begin = time.process_time()
                kept[keeps * len(kept) :] = [desktop.perform(action)]
                desktop.verdict()
                steps.append(time.process_time() - begin)
            wall += time.perf_counter()
        spent.append(steps)
        walls.append(wall)
    count, seconds = len(spent[0]), np.array(spent)
    core, undisturbed = np.median(seconds.sum(1)), seconds.min(0).sum()
    return Rates(count / float(core), count / float(undisturbed), count / statistics.median(walls))


class Split:
    """What the core's time goes into: that of a call without that of the calls within it."""

    def __init__(self) -> None:
        self.spent: defaultdict[str, float] = defaultdict(float)
        self._part, self._since = "", time.process_time()

    def watch(self, part: str, owner: object, name: str) -> None:
        """Count the calls of an object's method as a part."""
        call = getattr(owner, name)

        def counted(*given: Any) -> Any:
            before = self._switch(part)
            try:
                return call(*given)
            finally:
                self._switch(before)

        setattr(owner, name, counted)

    def _switch(self, part: str) -> str:
        now = time.process_time()
        self.spent[self._part] += now - self._since
        before, self._part, self._since = self._part, part, now
        return before


def step_us(size: tuple[int, int], plans: list[list[Action]], rounds: int) -> dict[str, int]:
    """Microseconds of a step, by part; of each part the least of some rounds."""
    found = [_spent_once(size, plans) for _ in range(rounds)]
    count = sum(map(len, plans))
    return {part: round(1e6 * min(spent[part] for spent in found) / count) for part in PARTS}


def _spent_once(size: tuple[int, int], plans: list[list[Action]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for seed, actions in enumerate(plans):
        desktop, split = desktop_of(size), Split()
        desktop.reset({}, seed)
        owners = (desktop, desktop._scene, desktop._compositor, desktop, desktop)
        for (part, name), owner in zip(PARTS.items(), owners, strict=True):
            split.watch(part, owner, name)
        for action in actions:
            desktop.perform(action)
            desktop.verdict()
        total.update(split.spent)
    return total


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
        planned = [plan(desktop_of(size), seed) for seed in range(options.episodes)]
        plans = [actions for actions, _ in planned]
        same = all(replayed(desktop_of(size), seed, *each) for seed, each in enumerate(planned))
        rates = steps_per_second(size, plans, options.rounds)
        figures[name] = {
            "steps_per_second": round(rates.core),
            "steps_per_second_undisturbed": round(rates.undisturbed),
            "steps_per_second_wall": round(rates.wall),
            "steps_per_second_kept": round(steps_per_second(size, plans, options.rounds, keeps=True).core),
            "step_us": step_us(size, plans, options.rounds),
            "replays_identical": same,
            "reset_ms": round(reset_ms(size, 3 * options.episodes), 2),
            "snapshot_restore_us": round(snapshot_restore_us(size, 1000), 2),
        }
        figures["actions"] = dict(Counter(type(action).__name__ for actions in plans for action in actions))
    if options.json:
        print_json(figures)
    else:
        print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
