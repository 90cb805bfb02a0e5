"""The entry point of `vlrl`: signals are handled before anything is imported that takes time."""

from __future__ import annotations

import sys

from vlrl.process.interrupts import signals_while_starting


def main() -> None:
    """Run the command of sys.argv and exit with its code, see `vlrl.cli.app`."""
    arguments = sys.argv[1:]
    with signals_while_starting(as_json="--json" in arguments):
        from vlrl.cli.app import run

        sys.exit(run(arguments))
