"""gui/browsergym: which tasks there are, MiniWoB's own pages, and what the documentation shows."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ecosystem import ROOT, python

from vlrl.config.data import DataConfig
from vlrl.data import open_dataset
from vlrl.environment.host.failure import EnvFailure
from vlrl.environment.open import open_env
from vlrl.envs.gui.actions import Click
from vlrl.errors import ConfigError

TASKS = ROOT / "tests" / "helpers" / "browsergym_tasks.py"


def opened(tasks: str | list[str], **options: Any) -> Any:
    return open_env("gui/browsergym", {"tasks": tasks, "python": python(), **options})


def test_a_page_of_miniwob_is_solved_by_what_its_tree_says() -> None:
    env = opened("browsergym/miniwob.click-dialog", observe="tree")
    shown = env.reset({}, 0)
    assert shown.text.startswith('Task: Close the dialog box by clicking the "x".') and not shown.images
    x0, y0, x1, y1 = next(each.box for each in env.backend.elements() if each.name == "Close")
    result = env.step(env.codec.format(Click(((x0 + x1) // 2, (y0 + y1) // 2)), env.view))
    assert (result.reward, result.terminated, result.info["success"]) == (1.0, True, True)
    assert env.view.screen == (498, 321)
    env.close()


def test_the_documentation_gives_rows() -> None:
    page = (ROOT / "docs" / "gui_web.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    tree = yaml.safe_load(block.replace(".venv-browsergym/bin/python", python()))
    dataset = open_dataset(DataConfig.model_validate(tree["data"]).train[0], "data.train")
    row = dataset[0]
    assert len(dataset) == 256 and row["metadata"]["task"].startswith("browsergym/miniwob.")
    assert [part["type"] for part in row["messages"][1]["content"]] == ["image", "text"]


def test_a_task_that_cannot_be_set_up_is_a_failure_and_not_a_verdict() -> None:
    env = opened("browsergym/local.broken", packages=[str(TASKS)], size=[640, 480])
    with pytest.raises(
        EnvFailure, match=r"the site does not answer .*task browsergym/local.broken"
    ) as failed:
        env.reset({}, 0)
    assert failed.value.kind == "raised"
    assert env.reset({"task_kwargs": {"works": True}}, 0).images
    with pytest.raises(ConfigError, match="task has 'nmae'; it may have name, seed, task_kwargs"):
        env.reset({"nmae": "browsergym/local.broken"}, 0)
    env.close()
    env = opened("browsergym/local.form", packages=[str(TASKS)])
    with pytest.raises(ConfigError, match=r"the screen of browsergym/local.form is 640×480; set size="):
        env.reset({}, 0)
    env.close()


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("cannot be run", {"python": str(tmp_path / "python")}),
        ("has no browsergym-core; install it", {"python": sys.executable}),
        ("has no browsergym-webarena; install it", {"tasks": "browsergym/webarena.7"}),
        ("did you mean 'browsergym/miniwob.click-dialog'", {"tasks": "browsergym/miniwob.click-dialogue"}),
        ("make has 'action_mapping'", {"make": {"action_mapping": None}}),
        ("nothing.py does not exist", {"packages": [str(tmp_path / "nothing.py")]}),
        ("give .width, height. in pixels", {"size": [640]}),
        ("observe='sound'", {"observe": "sound"}),
        ("deadlines has no 'reset'", {"deadlines": {"reset": 3}}),
    ]
    for said, options in wrong:
        with pytest.raises(ConfigError, match=said):
            opened(**{"tasks": "browsergym/miniwob.click-dialog", **options})
