"""Cost of bringing a step of the emulated desktop to a model: hash, resize, patches, transport.

    python benchmarks/emu_pixels.py --json

The steps are those of emu.py. `ready_us` is the core's time of a step by part, as a rollout spends it:

    step       the desktop's: logic, layout, painting, screenshot, verdict
    hashing    a name for the screenshot, of all its pixels; SHA-256 of each new one that is resized
    resizing   to what Qwen2.5-VL reads, 28 pixels by 28, of a screenshot that is not among the last ones
    patches    of each new one, by transformers' processor: what the vision tower takes

`transport_us` is the core's time of both processes for a step of the environment in a process of its own
(`env.isolation: process`), its words read and its screenshot there as an array, and for the same without.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections import Counter, OrderedDict
from typing import Any

import numpy as np
import psutil
from emu import SIZES, Split, desktop_of, plan
from media import LIMITS, fitted, image_processor

from vlrl.config.rollout import EnvConfig
from vlrl.environment.host.host import EnvHost
from vlrl.environment.observe import digest_of
from vlrl.envs.gui.actions import Action
from vlrl.envs.gui.emu.env import EmuEnv
from vlrl.process.json_stdout import parse_with_json, print_figures
from vlrl.processors.media.image import frames_hash, resize
from vlrl.protocols import Observation
from vlrl.rollout.context import NUM_KEPT_MESSAGES
from vlrl.types import ByteArray, EnvTask

PARTS = ("step", "hashing", "resizing", "patches")
NUM_ACTIONS = 40


class Rollout:
    """What is done with a screenshot before a model sees it."""

    def __init__(self, size: tuple[int, int]) -> None:
        self.desktop = desktop_of(size)
        self.seen: OrderedDict[str, Any] = OrderedDict()
        self.target = fitted(size[1], size[0], LIMITS.min_pixels, LIMITS.max_pixels)
        self.processor = image_processor()

    def step(self, action: Action) -> ByteArray:
        pixels = self.desktop.perform(action).pixels
        self.desktop.verdict()
        return pixels

    def hashing(self, pixels: ByteArray) -> str:
        return digest_of(Observation("", [pixels]))

    def resizing(self, pixels: ByteArray) -> ByteArray:
        return resize(pixels[None], self.target)

    def naming(self, resized: ByteArray) -> str:
        return frames_hash("image", resized)

    def patches(self, resized: ByteArray) -> Any:
        return self.processor(images=[resized[0]], do_resize=False, return_tensors="pt")["pixel_values"]

    def show(self, action: Action) -> None:
        """A step until the model may see it; a screenshot that was among the last ones is known."""
        pixels = self.step(action)
        name = self.hashing(pixels)
        if name not in self.seen:
            resized = self.resizing(pixels)
            self.seen[name] = self.naming(resized), self.patches(resized)
            if len(self.seen) > NUM_KEPT_MESSAGES:
                self.seen.popitem(last=False)
        self.seen.move_to_end(name)


def ready_us(size: tuple[int, int], plans: list[list[Action]], rounds: int) -> dict[str, int]:
    """Microseconds of a step, by part, until its pixels are what a vision tower takes."""
    rollout, found = Rollout(size), []
    for _ in range(rounds):
        total: Counter[str] = Counter()
        for seed, actions in enumerate(plans):
            rollout.desktop.reset({}, seed)
            split = Split()
            for name in (*PARTS, "naming"):
                vars(rollout).pop(name, None)  # the last split's
                split.watch("hashing" if name == "naming" else name, rollout, name)
            for action in actions:
                rollout.show(action)
            total.update(split.spent)
        found.append(total)
    count = sum(map(len, plans))
    return {part: round(1e6 * min(total[part] for total in found) / count) for part in PARTS}


def clicks(env: EmuEnv, seed: int) -> list[str]:
    """An episode of clicks anywhere, in the codec's words."""
    rng, words = np.random.default_rng(seed), []
    env.reset({}, seed)
    for _ in range(NUM_ACTIONS):
        words.append(env.random_action(rng))
        result = env.step(words[-1])
        if result.terminated or result.truncated:
            break
    return words


def transport_us(size: tuple[int, int], episodes: int, rounds: int) -> dict[str, int]:
    """Microseconds of a step of the whole environment: called directly, and in a process of its own."""
    options = {"size": list(size), "max_steps": 2 * NUM_ACTIONS}
    env = EmuEnv(**options)  # type: ignore[arg-type]
    episode_words = [clicks(env, seed) for seed in range(episodes)]
    count = sum(map(len, episode_words))
    direct, driver, worker = [], [], []

    def play() -> None:
        for seed, words in enumerate(episode_words):
            env.reset({}, seed)
            for said in words:
                env.step(said)

    async def play_hosted(host: EnvHost) -> None:
        for seed, words in enumerate(episode_words):
            one = await host.open(EnvTask("gui/emu", options, {}, seed))
            await one.reset()
            for said in words:
                await one.step(said)
            await one.close()

    with EnvHost(EnvConfig(isolation="process"), max_open=1) as host, asyncio.Runner() as loop:
        loop.run(play_hosted(host))
        for _ in range(rounds):
            begin = time.process_time()
            play()
            direct.append(time.process_time() - begin)
            begins = time.process_time(), workers_s()
            loop.run(play_hosted(host))
            driver.append(time.process_time() - begins[0])
            worker.append(workers_s() - begins[1])
    both = [a + b for a, b in zip(driver, worker, strict=True)]
    figures = {"direct": direct, "driver": driver, "worker": worker, "both": both}
    return {name: round(1e6 * min(seconds) / count) for name, seconds in figures.items()}


def workers_s() -> float:
    """Seconds of the core that this process's children have had."""
    return sum(sum(one.cpu_times()[:2]) for one in psutil.Process().children(recursive=True))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    options = parse_with_json(parser)
    figures: dict[str, Any] = {"load_average": round(os.getloadavg()[0], 2)}
    for name, size in SIZES.items():
        plans = [plan(desktop_of(size), seed)[0] for seed in range(options.episodes)]
        ready = ready_us(size, plans, options.rounds)
        figures[name] = {
            "ready_us": ready,
            "ready_steps_per_second": round(1e6 / sum(ready.values())),
            "transport_us": transport_us(size, options.episodes, options.rounds),
        }
    print_figures(figures, options.json)


if __name__ == "__main__":
    main()
