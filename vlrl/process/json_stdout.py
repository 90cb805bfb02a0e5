"""A stdout that holds JSON and nothing else: whatever libraries and child processes print goes to stderr.

DeepSpeed, Ray, compilers and plug-ins write to file descriptor 1 whenever they like, so the descriptor itself
is given to stderr, and results go out by a copy of the old one.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

_stdout: TextIO | None = None
"""Where results go, once stdout has been claimed."""


def claim_stdout() -> None:
    """Let only `print_json` write to stdout, in this process and in those that it starts."""
    global _stdout
    if _stdout is not None:
        return
    sys.stdout.flush()
    _stdout = os.fdopen(os.dup(1), "w", encoding="utf-8")  # not inherited by children
    os.dup2(2, 1)


def stdout_descriptor() -> int:
    """The file descriptor that results go to, for signal handlers, which must not use a stream."""
    return 1 if _stdout is None else _stdout.fileno()


def print_json(value: Any) -> None:
    """Write a value to stdout as one line of JSON."""
    print(json.dumps(value), file=_stdout or sys.stdout, flush=True)


def print_figures(figures: Mapping[str, Any], as_json: bool) -> None:
    """Write what a program measured to stdout: as one line of JSON, or in a line each."""
    if as_json:
        print_json(figures)
        return
    width = max(map(len, figures), default=0)
    for name, value in figures.items():
        print(f"{name:{width}} {value}")


def parse_with_json(parser: ArgumentParser, arguments: Sequence[str] | None = None) -> Namespace:
    """Add --json to a program's options and parse them; with it, stdout is claimed."""
    parser.add_argument("--json", action="store_true", help="stdout is one JSON object, the rest on stderr")
    options = parser.parse_args(arguments)
    if options.json:
        claim_stdout()
    return options
