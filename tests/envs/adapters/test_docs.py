"""What docs/environments.md shows of Gymnasium and PettingZoo runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "environments.md").read_text(encoding="utf-8")
SECTION = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
EXAMPLES = [
    pytest.param(example, id=f"{title} {index}")
    for title, text in SECTION.findall(PAGE)
    if title in ("Gymnasium", "Gymnasium vector environments", "PettingZoo")
    for index, example in enumerate(EXAMPLE.findall(text))
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) == 4


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str) -> None:
    exec(compile(example, "docs/environments.md", "exec"), {"__name__": "example"})
