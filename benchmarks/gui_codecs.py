"""How fast a codec reads and writes an action, and that the time grows no faster than the text.

    python benchmarks/gui_codecs.py --json

Given are microseconds to read and to write a click (median of the rounds), and of texts of 1,000,000
characters that are hostile to a parser the slowest, in milliseconds of CPU, and its time over that of a tenth
of it: 10 is linear, 100 would be a square. The floor is what cannot be left out: json.loads of a call.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.codecs.codec import ActionError, Codec, View
from vlrl.envs.gui.codecs.open import CODECS, open_codec
from vlrl.process.json_stdout import parse_with_json, print_json

VIEW = View(Canvas((800, 1280), (812, 1288)), (0, 0))
HOSTILE = (
    "(",
    "[",
    '{"a":',
    "'",
    "\\",
    "```",
    "Action: \n",
    "<tool_call>",
    "<action></action>",
    "a+",
    "', a=",
    " ",
)
FORMS = (
    "{}",
    "<action>click {}</action>",
    "Action: type(content='{}')",
    "pyautogui.click({})",
    "<answer>{}</answer>",
)


def microseconds(work: Callable[[], object], rounds: int) -> float:
    """Median of the rounds, each of a hundred calls."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(100):
            work()
        taken.append((time.perf_counter() - start) * 1e4)
    return round(statistics.median(taken), 1)


def seconds(codec: Codec, text: str) -> float:
    """The least CPU time of three."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        with contextlib.suppress(ActionError):
            codec.parse(text, VIEW)
        taken.append(time.process_time() - start)
    return min(taken)


def worst_growth(codec: Codec, long: int) -> dict[str, float]:
    """Time of the slowest hostile text, and its ratio to the time of a text of a tenth of its length."""
    slowest, growth = 0.0, 0.0
    for form in FORMS:
        for piece in HOSTILE:
            short, whole = (form.format((piece * n)[:n]) for n in (long // 10, long))
            taken = seconds(codec, whole)
            if taken > slowest:
                slowest, growth = taken, taken / seconds(codec, short)
    return {"slowest_ms": round(slowest * 1e3, 1), "growth": round(growth, 1)}


def measure(rounds: int, long: int) -> Mapping[str, Any]:
    click = Click((640, 400))
    found: dict[str, Any] = {}
    for name in CODECS:
        codec = open_codec(name)
        text = codec.format(click, VIEW)
        found[name] = {
            "read_us": microseconds(lambda c=codec, t=text: c.parse(t, VIEW), rounds),  # type: ignore[misc]
            "write_us": microseconds(lambda c=codec: c.format(click, VIEW), rounds),  # type: ignore[misc]
            **worst_growth(codec, long),
        }
    call = '{"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [644, 406]}}'
    return {"floor_json_us": microseconds(lambda: json.loads(call), rounds), "codecs": found}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--long", type=int, default=1_000_000, help="characters of the hostile texts")
    arguments = parse_with_json(parser)
    found = measure(arguments.rounds, arguments.long)
    if arguments.json:
        print_json(found)
        return
    print(f"json.loads of a call: {found['floor_json_us']} µs")
    for name, of in found["codecs"].items():
        print(
            f"{name:22} read {of['read_us']:7} µs, write {of['write_us']:6} µs; "
            f"{arguments.long:,} hostile: {of['slowest_ms']} ms, {of['growth']} times a tenth"
        )


if __name__ == "__main__":
    main()
