"""Questions as rows, and the example of docs/tools.md as it stands there."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import open_tiny
from PIL import Image

from vlrl.environment.open import open_env
from vlrl.envs.tools.rows import question_row
from vlrl.parsing.tool_calls import write_call
from vlrl.registry import resolve

OPTIONS = {"tools": ["zoom"], "max_side": 56, "multiple_of": 28, "told_by": "system_prompt"}


def test_a_row_is_what_its_episode_shows_first(tiny_model: Path) -> None:
    image = Image.new("RGB", (300, 200), "red")
    row = question_row("a", "Which colour?", [image], "red", OPTIONS)
    assert [message["role"] for message in row["messages"]] == ["system", "user"]
    env = open_env(row["env"]["name"], row["env"]["options"])
    shown = env.reset(row["env"]["task"], row["env"]["seed"])
    np.testing.assert_array_equal(row["messages"][1]["content"][0]["image"], shown.images[0])
    assert row["messages"][1]["content"][1]["text"] == shown.text == "Which colour?"
    sample = open_tiny(tiny_model).sample(row)
    assert sample.env is not None and sample.env.name == "tools" and sample.answer == "red"
    assert sample.media[0].size == sample.media[0].original_size == (28, 56), "a pixel shown is a pixel seen"


def test_the_template_is_told_unless_the_system_prompt_is() -> None:
    row = question_row("a", "?", [], "1", {"tools": ["calculator"]})
    assert [tool["function"]["name"] for tool in row["tools"]] == ["calculator"]
    assert [message["role"] for message in row["messages"]] == ["user"]
    assert "tools" not in question_row("a", "?", [], "1", OPTIONS)


def test_the_guide_runs(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (root / "docs" / "tools.md").read_text()
    for name, code in re.findall(r"```python (\w+\.py)\n(.*?)```", guide, re.DOTALL):
        (tmp_path / name).write_text(code)
    monkeypatch.chdir(tmp_path)
    rows: Any = resolve("datasets", "./scales.py:Weights")()
    row = rows[0]
    env = open_env("tools", row["env"]["options"])
    env.reset(row["env"]["task"], row["env"]["seed"])
    result: Any = env.step(write_call("weigh", {"thing": "tea", "unit": "kg"}))
    assert result.observation.text == "0.25"
    wrong: Any = env.step(write_call("weigh", {"thing": "tea", "unit": "lb"}))
    assert wrong.observation.text in guide
