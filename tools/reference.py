"""Write docs/reference/ from the code: `make reference`, after a change to an option, reward or metric."""

from __future__ import annotations

from pathlib import Path

from vlrl.cli.reference.pages import write_pages

if __name__ == "__main__":
    for path in write_pages(Path(__file__).parents[1] / "docs" / "reference"):
        print(path.name)
