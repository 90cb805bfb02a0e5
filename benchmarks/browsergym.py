"""Resets, steps and memory of gui/browsergym on a page of MiniWoB: wall time, and time on all processors.

    python benchmarks/browsergym.py --python .venv-ecosystem/bin/python [--num 20] [--json]

Measured twice: as BrowserGym plays the task, and without its pauses (slow_mo 0, pre_observation_delay 0.1 s).
Other programs on the machine change the processors' time least.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

from vlrl.envs.gui.actions import Move
from vlrl.envs.gui.browsergym.env import BrowserGymEnv
from vlrl.envs.process_tree import read_proc, tree, usage_of
from vlrl.process.json_stdout import parse_with_json, print_figures

TASK = "browsergym/miniwob.click-dialog"
PAUSES = {"as_it_is": {}, "without_pauses": {"slow_mo": 0, "pre_observation_delay": 0.1}}


def processor_s(root: int) -> float:
    """Time of a process, of those that descend from it, and of those of them that have ended."""
    ticks = 0
    for pid in tree(root):
        fields = read_proc(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        ticks += sum(map(int, fields[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def measured(root: int, num: int, call: Callable[[int], object]) -> dict[str, float]:
    times, begin = [], processor_s(root)
    for number in range(num):
        started = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - started)
    found = {
        "s": statistics.median(times),
        "s_min": min(times),
        "processor_s": (processor_s(root) - begin) / num,
    }
    return {name: round(value, 2) for name, value in found.items()}


def figures(python: str, make: dict[str, Any], num: int) -> dict[str, Any]:
    env = BrowserGymEnv([TASK], python, make=make, max_steps=num + 1)
    env.reset({}, 0)
    action = env.codec.format(Move((400, 300)), env.view)
    assert env.backend._program is not None
    root = env.backend._program.pid
    found: dict[str, Any] = {"reset": measured(root, num, lambda seed: env.reset({}, seed))}
    found["step"] = measured(root, num, lambda number: env.step(action))
    found["memory_mib"] = usage_of(tree(root)).memory >> 20
    env.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--python", required=True, help="the interpreter that has BrowserGym")
    parser.add_argument("--num", type=int, default=20, help="resets, and steps")
    args = parse_with_json(parser)
    found: dict[str, Any] = {"load": round(os.getloadavg()[0], 1)}
    found |= {name: figures(args.python, make, args.num) for name, make in PAUSES.items()}
    print_figures(found, args.json)


if __name__ == "__main__":
    main()
