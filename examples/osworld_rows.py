"""Rows for gui/osworld from OSWorld's task files, with no more infeasible ones than are good.

    python examples/osworld_rows.py OSWorld/evaluation_examples/examples rows.jsonl \\
        --url http://10.0.0.5:5000 --revert docker restart osworld-{index} [--infeasible-share 0.2]
        [--evaluators .venv-osworld/bin/python]

Prints as JSON what there is, what was taken, and what an agent wins that always says "infeasible".
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from vlrl.envs.gui.remote.osworld_rows import osworld_rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="evaluation_examples/examples of OSWorld")
    parser.add_argument("out", type=Path, help="a JSON-lines file")
    parser.add_argument("--url", nargs="+", default=[], help="of the machines")
    parser.add_argument("--revert", nargs="*", default=[], help="the command that puts a machine back")
    parser.add_argument("--evaluators", help="an interpreter that has OSWorld's package desktop_env")
    parser.add_argument("--infeasible-share", type=float, default=0.2, help="most of the rows")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    options = {"urls": args.url, "revert": args.revert}
    if args.evaluators:
        options["evaluators"] = args.evaluators
    rows, survey = osworld_rows(args.folder, options, infeasible_share=args.infeasible_share, seed=args.seed)
    args.out.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    print(json.dumps(survey._asdict()))


if __name__ == "__main__":
    main()
