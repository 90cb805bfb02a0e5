"""docs/library.md and own_loop.md: programs run up to the training; tests/e2e trains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from documents import blocks

from vlrl import TrainingClient
from vlrl.data import open_dataset
from vlrl.registry import resolve

ROOT = Path(__file__).parents[2]
GUIDE, OWN_LOOP = (
    (ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("library.md", "own_loop.md")
)


def programs_of(guide: str) -> dict[str, dict[str, Any]]:
    """What each block defines, after those before it."""
    names: dict[str, Any] = {"__name__": "__main__"}
    found = {}
    for language, mark, text in blocks(guide):
        assert language == "python" and mark
        if mark == "slow":
            compile(text, mark, "exec")
            continue
        exec(compile(text, mark, "exec"), names)
        found[mark] = dict(names)
    return found


def test_every_program_is_right_up_to_the_training() -> None:
    programs = programs_of(GUIDE)
    assert GUIDE.count("\n```") == 2 * len(blocks(GUIDE))
    (source,) = programs["train.py"]["trainer"].config.data.train
    assert [row["answer"] for row in open_dataset(source, "rows")] == ["0", "blue"]
    assert programs["more.py"]["pairs"].config.run.name == "pairs"
    assert programs["callbacks.py"]["trainer"].config.eval.every == 50
    environment = programs["environment.py"]
    (source,) = environment["trainer"].config.data.train
    row = open_dataset(source, "rows")[0]
    env = resolve("envs", row["env"]["name"])(**row["env"]["options"])
    assert env.reset({}, row["env"]["seed"]).text == "Guess a number from 1 to 5."
    assert [env.step(str(guess)).reward for guess in range(1, 6)].count(1.0) == 1
    algorithm = programs["algorithm.py"]["trainer"].config.algorithm
    assert algorithm.credit.options == {"margin": 0.1}


def test_an_own_loop_is_right_up_to_the_training() -> None:
    programs = programs_of(OWN_LOOP)
    assert OWN_LOOP.count("\n```") == 2 * len(blocks(OWN_LOOP))
    assert programs["with_rewards"]["client"].config.algorithm.loss.name == "gspo"
    tasks = programs["episodes"]["tasks"]
    assert len(tasks) == 64 and tasks[0]["env"]["name"] == "visual/mazes"
    for name in ("sample", "forward_backward", "forward_backward_targets", "optim_step", "logprobs"):
        assert f"| `{name}(" in OWN_LOOP and callable(getattr(TrainingClient, name))


@pytest.mark.parametrize("name", ["own_data", "own_reward", "gui_agent"])
def test_a_notebook_is_committed_without_outputs(name: str) -> None:
    cells = json.loads((ROOT / "examples" / "notebooks" / f"{name}.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) >= 4
    assert not [cell for cell in code if cell["outputs"] or cell["execution_count"] is not None]
    assert f"notebooks/{name}.ipynb" in GUIDE
