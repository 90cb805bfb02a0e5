"""docs/gui.md: its config loads, its rows can be had, its environments, configs and pages exist."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import yaml

from vlrl.config import parse_config
from vlrl.registry import available, resolve

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "gui.md").read_text(encoding="utf-8")


def test_the_config_loads_and_gives_rows() -> None:
    block = re.search(r"^    data:\n(?:    .*\n)+", TEXT, re.MULTILINE)
    assert block
    tree = {"model": {"path": "m"}, **yaml.safe_load(textwrap.dedent(block[0]))}
    config = parse_config(tree)
    assert callable(resolve("rewards", config.rewards[0].name))
    row = resolve("datasets", "gui_grounding")(**config.data.eval[0].options)[0]
    assert row["answer"]["action"] == "click"


def test_what_it_names_exists() -> None:
    assert set(re.findall(r"`(gui/\w+)`", TEXT)) <= set(available("envs"))
    for name in re.findall(r"configs/\w+\.yaml", TEXT):
        assert (ROOT / name).is_file()
    for page in re.findall(r"\]\((\w+\.md)\)", TEXT):
        assert (ROOT / "docs" / page).is_file()
