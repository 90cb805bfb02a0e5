"""The process that reads expressions is kept for the next one, whoever started it."""

from __future__ import annotations

import subprocess
import sys

LARGE_PARENT = """
import subprocess

from vlrl.rewards.math.reward import math

started, popen = [], subprocess.Popen
subprocess.Popen = lambda *args, **kwargs: started.append(1) or popen(*args, **kwargs)
held = b"1" * (700 << 20)  # as much as a process that has loaded a model's libraries
scores = [math(rf"\\\\frac{{{n}}}{{7}}", rf"\\\\frac{{{n}}}{{7}}", part="whole") for n in range(1, 5)]
print(len(started), *scores)
"""


def test_it_is_kept_by_a_process_that_holds_much_memory() -> None:
    """A child's ru_maxrss begins with its parent's: taken for its own, every call started another process."""
    done = subprocess.run([sys.executable, "-c", LARGE_PARENT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "1.0", "1.0", "1.0", "1.0"]
