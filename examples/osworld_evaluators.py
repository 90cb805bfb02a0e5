"""What OSWorld's evaluators need, and which of them an interpreter with its package desktop_env can run.

    python examples/osworld_evaluators.py .venv-osworld/bin/python

Prints tables in Markdown: counts by need, packages by the number of metrics that need them, what is missing.
"""

from __future__ import annotations

import argparse

from vlrl.envs.gui.remote.evaluators.package import described
from vlrl.envs.gui.remote.evaluators.table import evaluators_table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", help="the interpreter that has desktop_env")
    found = described(parser.parse_args().python)
    print(f"desktop_env {found['version']}\n\n{evaluators_table(found)}")


if __name__ == "__main__":
    main()
