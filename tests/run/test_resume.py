"""What changes when a run is resumed under another config: shown, kept by step, or refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import make_config

from vlrl.config import Config, parse_config
from vlrl.errors import ConfigError
from vlrl.run.checkpoint import RunState, require_same_run
from vlrl.run.resume import changes_since, described, require_resumable, write_config

BEFORE: dict[str, Any] = {
    "rewards": [{"name": "answer_exact"}, {"name": "tag_format", "weight": 0.1}],
    "rollout": {"prompts_per_step": 4, "group_size": 4, "max_tokens": 12},
}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    write_config(tmp_path, make_config(**BEFORE), 0)
    return tmp_path


def test_the_same_config_has_no_changes(run_dir: Path) -> None:
    assert changes_since(run_dir, make_config(**BEFORE)) == []


def test_a_run_without_a_config_has_none_to_compare(tmp_path: Path) -> None:
    assert changes_since(tmp_path, make_config(**BEFORE)) == []


def test_every_changed_value_is_named_with_both(run_dir: Path) -> None:
    now = BEFORE | {
        "rewards": [{"name": "answer_exact", "weight": 2.0}],
        "rollout": BEFORE["rollout"] | {"group_size": 8},
        "optim": {"lr": 2e-5},
        "num_steps": 400,
        "logging": {"tensorboard": False},
    }
    changes = changes_since(run_dir, make_config(**now))
    require_resumable(changes)
    text = described(changes, 120)
    assert "the experiment is another one from step 121 on:" in text
    lines = text.splitlines()
    for line in (
        "  rollout.group_size: 4 → 8",
        "  optim.lr: 1e-06 → 2e-05",
        "  rewards.0.weight: 1.0 → 2.0",
        "  rewards.1.name: 'tag_format' → absent",
    ):
        assert line in lines
    assert lines[-1] == (
        "changed, without effect on what is learnt: num_steps: 100 → 400; logging.tensorboard: True → False"
    )


def test_more_steps_alone_change_no_experiment(run_dir: Path) -> None:
    text = described(changes_since(run_dir, make_config(**BEFORE, num_steps=200)), 5)
    assert text == "--resume: changed, without effect on what is learnt: num_steps: 100 → 200"


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["model.path=/another"], "/unused' → '/another'"),
        (["model.freeze=[vision_tower]"], "model.freeze: [] → ['vision_tower']"),
        (["model.dtype=bfloat16"], "model.dtype: 'float32' → 'bfloat16'"),
        (["lora={rank: 8}"], "lora: null → absent: the checkpoint has"),
        (["run.seed=3"], "run.seed: 0 → 3"),
        (["optim.state=8bit"], "optim.state"),
        (["optim.name=muon"], "optim.name"),
        (
            ["trainer.offload_optimizer=true", "trainer.offload_dir=/tmp"],
            "trainer.offload_dir: null → '/tmp'",
        ),
    ],
)
def test_what_cannot_be_loaded_or_gone_on_with_is_refused(
    run_dir: Path, overrides: list[str], words: str
) -> None:
    now = parse_config(make_config(**BEFORE).model_dump(mode="json"), overrides=overrides)
    with pytest.raises(ConfigError, match=re.escape(words)) as refused:
        require_resumable(changes_since(run_dir, now))
    assert "another run.name" in str(refused.value)


def test_a_model_may_move_together_with_the_run_s_folder(tmp_path: Path) -> None:
    """A project's folder gets another name, and both paths were relative in the person's config."""
    write_config(tmp_path, make_config("/a/models/tiny", run={"dir": "/a/runs"}), 0)
    changes = changes_since(tmp_path, make_config("/b/models/tiny", run={"dir": "/b/runs"}))
    require_resumable(changes)
    assert [change.key for change in changes] == ["run.dir"]
    for model, runs in (("/b/models/tiny", "/a/runs"), ("/b/models/other", "/b/runs")):
        with pytest.raises(ConfigError, match=r"model\.path: '/a/models/tiny' → '/b/models/"):
            require_resumable(changes_since(tmp_path, make_config(model, run={"dir": runs})))


def test_relative_paths_of_an_older_version_s_config_are_those_of_this_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config = make_config("models/tiny", run={"dir": "runs"})
    old = config.model_dump(mode="json")
    old["model"]["path"], old["run"]["dir"] = "models/tiny", "runs"
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(old))
    assert changes_since(tmp_path, config) == []


def test_another_number_of_ranks_is_no_other_experiment(run_dir: Path) -> None:
    changes = changes_since(run_dir, make_config(**BEFORE, trainer={"num_ranks": 4}))
    require_resumable(changes)
    text = described(changes, 5)
    assert text == "--resume: changed, without effect on what is learnt: trainer.num_ranks: null → 4"


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ({"optim": {"state": "8bit"}}, "with optim.state=8bit blocks of moments share a scale"),
        (
            {"trainer": {"num_ranks": 4, "offload_optimizer": True, "offload_dir": "/tmp"}},
            "with trainer.offload_dir its states are swap files",
        ),
    ],
)
def test_states_that_cannot_be_cut_again_are_refused_for_other_ranks(
    sections: dict[str, Any], why: str
) -> None:
    config = make_config(**{"trainer": {"num_ranks": 4}, **sections})
    with pytest.raises(ConfigError, match=rf"trainer.num_ranks=2, the config says 4: {why}"):
        require_same_run(RunState(5, 0, 2), config)
    require_same_run(RunState(5, 0, 4), config)
    uncounted = sections.get("trainer", {}) | {"num_ranks": None}  # they are asked for again once counted
    require_same_run(RunState(5, 0, 2), make_config(**sections | {"trainer": uncounted}))
    in_memory = {"num_ranks": 4, "offload_optimizer": True, "offload_parameters": True}
    require_same_run(RunState(5, 0, 2), make_config(trainer=in_memory))


def test_adapters_of_another_shape_are_refused_and_another_way_to_send_them_is_not(tmp_path: Path) -> None:
    write_config(tmp_path, make_config(lora={"rank": 8}), 0)
    with pytest.raises(ConfigError, match=r"lora\.rank: 8 → 16"):
        require_resumable(changes_since(tmp_path, make_config(lora={"rank": 16})))
    with pytest.raises(ConfigError, match="lora: absent → null"):
        require_resumable(changes_since(tmp_path, make_config()))
    require_resumable(changes_since(tmp_path, make_config(lora={"rank": 8, "sync": "adapter"})))


def test_policies_stay_as_they_are_but_for_how_often_a_copy_is_taken(tmp_path: Path) -> None:
    def config_of(**second: Any) -> Config:
        policies = {"a": {"agents": ["x"]}, "b": {"agents": ["y"], **second}}
        return make_config(lora={"sync": "adapter"}, policies=policies)

    write_config(tmp_path, config_of(copies="a", every=2), 0)
    require_resumable(changes_since(tmp_path, config_of(copies="a", every=4)))
    with pytest.raises(
        ConfigError, match=r"policies\.b\.copies: 'a' → null: the checkpoint has the adapters"
    ):
        require_resumable(changes_since(tmp_path, config_of()))
    with pytest.raises(ConfigError, match=r"policies"):
        require_resumable(changes_since(tmp_path, make_config(lora={"sync": "adapter"})))


def test_every_config_is_kept_by_the_step_that_it_began_with(run_dir: Path) -> None:
    def kept() -> dict[str, float]:
        files = sorted((run_dir / "configs").iterdir())
        return {file.stem: yaml.safe_load(file.read_text())["optim"]["lr"] for file in files}

    write_config(run_dir, make_config(**BEFORE), 50)
    assert kept() == {"step_000000": 1e-6}
    write_config(run_dir, make_config(**BEFORE, optim={"lr": 2e-6}), 120)
    write_config(run_dir, make_config(**BEFORE, optim={"lr": 3e-6}), 180)
    assert kept() == {"step_000000": 1e-6, "step_000120": 2e-6, "step_000180": 3e-6}
    # The run went back behind a damaged checkpoint: the steps from 150 on are redone.
    write_config(run_dir, make_config(**BEFORE, optim={"lr": 4e-6}), 150)
    assert kept() == {"step_000000": 1e-6, "step_000120": 2e-6, "step_000150": 4e-6}
    assert yaml.safe_load((run_dir / "config.yaml").read_text())["optim"]["lr"] == 4e-6


def test_going_back_behind_the_last_change_keeps_the_config_that_is_in_force(run_dir: Path) -> None:
    now = make_config(**BEFORE, optim={"lr": 2e-6})
    write_config(run_dir, now, 120)
    write_config(run_dir, now, 100)  # the same config, from an older checkpoint: the one of 120 is damaged
    kept = {
        file.stem: yaml.safe_load(file.read_text())["optim"]["lr"] for file in (run_dir / "configs").iterdir()
    }
    assert kept == {"step_000000": 1e-6, "step_000100": 2e-6}
