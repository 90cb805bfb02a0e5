"""Two steps of every GUI config's twin through the real engines, on each backend."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ecosystem import python
from recipe_twins import Recipe, say_tagged, supervised, trained

from vlrl.env_play.demonstrations import demonstrate

CLI = [sys.executable, "-c", "from vlrl.cli.main import main; main()"]
TOKEN = "a-token-of-the-test"
TINY = (
    "rollout.max_tokens=24",
    "rollout.group_size=4",
    "processor={min_pixels: 7056, max_pixels: 12544}",
    "generator.max_model_len=1024",
    "env={isolation: inline}",
    "episodes.max_turns=2",
    "episodes.context.num_images=1",
    "trainer.gradient_checkpointing=false",
)
SHOWN = "shown_size=[112, 84]"
CASES = {
    "gui_emu": (SHOWN, "tasks=buttons/lights", "difficulty=1"),
    "gui_miniwob": ("shown_size=[84, 112]", "tasks=click-button"),
    "gui_x11": ("tasks=editor_append", "size=[640, 480]", SHOWN),
}
"""Options of the environments; in the plain grammar, as a tiny model does not learn JSON within a test."""


def twin(name: str, *more: str) -> Recipe:
    options = ("codec=plain", "instructions=Act.", "invalid_penalty=0.5", *more)
    rows = ("data.train.options.num_rows=8", "data.eval.options.num_rows=4")
    sizes = [f"data.{part}.options.options.{each}" for part in ("train", "eval") for each in options]
    return Recipe(name, lambda data: None, say_tagged, 1.0, "", 0.0, sizes=(*TINY, *rows, *sizes))


def warm(recipe: Recipe, model: Path) -> Path:
    """A model that knows the form of actions, from episodes of the environment's own oracle."""
    (source,) = recipe.config(model).data.train
    options, folder = source.options, Path("demonstrations")
    demonstrate(options["env"], options["options"], {}, num=8, folder=folder)
    rows = {"name": str(folder / "episodes.jsonl")}
    return supervised(recipe.config(model), rows, num_steps=60, train_on="assistant")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_trains(name: str, recipe_model: Path, local_ray: None) -> None:
    recipe = twin(name, *CASES[name])
    steps = trained(recipe, recipe.config(warm(recipe, recipe_model)))
    assert all(
        step["failures/failed_episodes"] == 0 and step["episode/num_turns_mean"] >= 1 for step in steps
    )


@pytest.fixture
def served() -> Iterator[str]:
    """gui/emu in a process of its own."""
    command = [*CLI, "env", "serve", "gui/emu", "codec=plain", "instructions=Act.", "invalid_penalty=0.5"]
    options = [SHOWN, "tasks=buttons/lights", "difficulty=1", "--json"]
    told: dict[str, Any] = {**os.environ, "VLRL_ENV_TOKEN": TOKEN}
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, env=told) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.send_signal(signal.SIGINT)


@pytest.mark.slow
def test_it_trains_on_a_server(
    served: str, recipe_model: Path, local_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLRL_ENV_TOKEN", TOKEN)
    model = warm(twin("gui_emu", *CASES["gui_emu"]), recipe_model)
    remote = [
        f"data.{part}.options.{each}"
        for part in ("train", "eval")
        for each in ("env=remote", f"options={{urls: ['{served}'], env: gui/emu}}", "num_rows=8")
    ]
    recipe = Recipe("gui_emu", lambda data: None, say_tagged, 1.0, "", 0.0, sizes=(*TINY, *remote))
    steps = trained(recipe, recipe.config(model))
    assert all(step["failures/failed_episodes"] == 0 for step in steps)


@pytest.mark.slow
@pytest.mark.timeout(900)  # a reset is a second of both processors
def test_it_trains_on_browsergym(recipe_model: Path, local_ray: None) -> None:
    """Environments in processes, BrowserGym in another for each; the form comes from gui/miniwob's oracle."""
    model = warm(twin("gui_miniwob", *CASES["gui_miniwob"]), recipe_model)
    told = {
        **{"tasks": ["browsergym/miniwob.click-button"], "python": python(), "shown_size": [112, 72]},
        **{"codec": "plain", "instructions": "Act.", "invalid_penalty": 0.5},
        "make": {"slow_mo": 0, "pre_observation_delay": 0.1},
    }
    rows = [
        f"data.{part}.options.{each}"
        for part in ("train", "eval")
        for each in ("env=gui/browsergym", f"options={json.dumps(told)}", "num_rows=4")
    ]
    env = "env={isolation: process, num_processes: 2}"
    sizes = (*TINY, *rows, env, "rollout.prompts_per_step=2")
    recipe = Recipe("gui_miniwob", lambda data: None, say_tagged, 1.0, "", 0.0, sizes=sizes)
    steps = trained(recipe, recipe.config(model, "rollout.prompts_per_step=2"))
    assert all(step["failures/failed_episodes"] == 0 for step in steps)
