"""Recorded episodes played again: what is the same is said to be, and whatever was changed is found."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from builders import open_tiny
from toy_episodes import TOY, play_toy, right, write_toy
from typer.testing import CliRunner

from vlrl.cli.commands.env import app
from vlrl.env_play.demonstrations import FILE, DemonstrationFile
from vlrl.env_play.game import PlayedGame
from vlrl.env_play.replay import replay_all
from vlrl.errors import ConfigError, DataError
from vlrl.tracking.rollouts.paths import train_file
from vlrl.tracking.rollouts.table import RolloutPlace, rollout_table

KINDS = [{"kind": kind} for kind in ("form", "click")]


def say(env: Any, turn: int) -> str:
    """Nonsense first, then what is right."""
    return "I would rather not." if turn == 0 else right(env, turn)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, tiny_model: Path) -> Path:
    """A run's rollouts on the toy desktop, as the rollout itself writes them."""
    run = tmp_path_factory.mktemp("run")
    write_toy(run, "before", tiny_model, play_toy(tiny_model, say, num_rows=2, tasks=KINDS))
    return run


def records_of(run: Path) -> list[Any]:
    return [json.loads(line) for line in (run / "rollouts/before.jsonl").read_text().splitlines()]


def replay_of(record: Any, folder: Path) -> Any:
    file = folder / "changed.jsonl"
    file.write_text(json.dumps(record) + "\n")
    result = replay_all(file)
    (episode,) = result["episodes"]
    assert result["ok"] == (episode["is_same"] and not episode["skipped"])
    return episode


def test_the_episodes_of_training_are_replayed_too(tmp_path: Path, tiny_model: Path) -> None:
    groups = play_toy(tiny_model, say, num_rows=2, tasks=KINDS)
    places = [RolloutPlace(0, number, number) for number in range(len(groups))]
    file = train_file(tmp_path, 0)
    file.parent.mkdir(parents=True)
    pq.write_table(rollout_table(groups, places, open_tiny(tiny_model)), file)
    result = replay_all(tmp_path)
    assert result["ok"] and result["num_episodes"] == result["num_same"] == 4


def test_a_runs_episodes_earn_and_show_the_same(recorded: Path) -> None:
    told: list[str] = []
    result = replay_all(recorded, on_episode=told.append)
    assert (result["ok"], result["num_same"], result["num_skipped"]) == (True, 4, 0)
    assert [episode["num_turns"] for episode in result["episodes"]] == [4, 4, 2, 2]
    assert {episode["pixels"] for episode in result["episodes"]} == {"same"}
    assert told == [episode["id"] for episode in result["episodes"]]


def test_coordinates_are_those_of_the_image_that_the_model_saw(recorded: Path, tmp_path: Path) -> None:
    """The same text without the canvases means another place, here one beside the pointer that was shown."""
    record = records_of(recorded)[-1]
    assert record["turns"][1]["canvases"][0]["size"] != record["turns"][1]["canvases"][0]["original_size"]
    for turn in record["turns"]:
        turn["canvases"] = []
    assert replay_of(record, tmp_path)["pixels"] == "at the end something else is shown"


@pytest.mark.parametrize(
    ("change", "name", "words"),
    [
        (lambda r: r["turns"][3].update(reward=0.5), "rewards", "turn 4: 0.5 then, 1 now"),
        (lambda r: r["turns"][2].update(text="<action>type x</action>"), "pixels", "before turn 4 something"),
        (lambda r: r["turns"][0].update(seen="0" * 64), "pixels", "before turn 1 something"),
        (lambda r: r["end"].update(seen="0" * 64), "pixels", "at the end something"),
        (lambda r: r["env"].update(seed=r["env"]["seed"] + 1), "pixels", "before turn 1 something"),
        (lambda r: r["env"].update(options={"max_steps": 2}), "problem", "it ends after turn 2, and went on"),
        (lambda r: r["env"].update(task={"kind": "dance"}), "problem", "toy desktop: the task"),
        (lambda r: r["turns"].pop(), "problem", "it goes on, and had ended"),
    ],
)
def test_what_is_changed_is_found(recorded: Path, tmp_path: Path, change: Any, name: str, words: str) -> None:
    record = records_of(recorded)[0]
    change(record)
    episode = replay_of(record, tmp_path)
    assert not episode["is_same"]
    assert words in episode[name]


def test_an_environment_that_raises_is_a_difference(recorded: Path, tmp_path: Path) -> None:
    record = records_of(recorded)[0]
    file = tmp_path / "breaks.py"
    file.write_text(
        f"import sys; sys.path.insert(0, {str(Path(TOY).parent)!r})\n"
        "from toy_desktop import ToyEnv\n"
        "class Breaks(ToyEnv):\n"
        "    def step(self, action):\n"
        "        raise OSError('no screen')\n"
    )
    record["env"]["name"] = f"{file}:Breaks"
    assert replay_of(record, tmp_path)["problem"] == "turn 1: OSError: no screen"


def test_what_cannot_be_played_again_is_skipped_and_says_why(recorded: Path, tmp_path: Path) -> None:
    record = records_of(recorded)[0]
    for change, words in (
        ({"env": None}, "no environment"),
        ({"env": {"name": "agent", "seed": 0}}, "no environment"),
        ({"turns": [], "outcome": "env_error"}, "before its first action"),
    ):
        assert words in replay_of({**record, **change}, tmp_path)["skipped"]


def test_a_failed_episode_is_played_up_to_where_it_failed(recorded: Path, tmp_path: Path) -> None:
    record = records_of(recorded)[0]
    record |= {"outcome": "env_error", "turns": record["turns"][:2], "end": {"seen": "", "media": []}}
    record["turns"][1]["reward"] = 7.0  # never given
    episode = replay_of(record, tmp_path)
    assert (episode["is_same"], episode["num_turns"]) == (True, 1)


def test_of_an_old_record_the_rewards_are_compared(recorded: Path, tmp_path: Path) -> None:
    record = copy.deepcopy(records_of(recorded)[0])
    record.pop("end")
    for turn in record["turns"]:
        del turn["seen"]
    assert replay_of(record, tmp_path)["pixels"] == "not recorded"
    record["turns"][0]["reward"] = 1.0
    assert replay_of(record, tmp_path)["rewards"] == "turn 1: 1 then, 0 now"


@pytest.mark.parametrize(("name", "options"), [("visual/mazes", {"level": 1}), (TOY, {})])
def test_demonstrations_are_played_again_too(tmp_path: Path, name: str, options: dict[str, Any]) -> None:
    game = PlayedGame(name, options, {}, 5)
    while not game.is_over:
        game.act(game.hint())
    game.close()
    DemonstrationFile(tmp_path).add(game)
    result = replay_all(tmp_path)
    assert (result["ok"], result["episodes"][0]["pixels"]) == (True, "same")
    row = json.loads((tmp_path / FILE).read_text())
    row["metadata"]["rewards"][-1] = 0.25
    (tmp_path / FILE).write_text(json.dumps(row) + "\n")
    assert "0.25 then, 1 now" in replay_all(tmp_path)["episodes"][0]["rewards"]


def test_the_command_says_so_and_fails(recorded: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    one = records_of(recorded)[2]["sample_id"]
    outcome = runner.invoke(app, ["replay", str(recorded), "--episode", f"{one}#1", "--json"])
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(outcome.stdout.splitlines()[-1])["num_episodes"] == 1
    record = records_of(recorded)[0]
    record["turns"][0]["seen"] = "0" * 64
    file = tmp_path / "changed.jsonl"
    file.write_text(json.dumps(record) + "\n")
    outcome = runner.invoke(app, ["replay", str(file)])
    assert outcome.exit_code == 1
    assert "before turn 1 something else is shown" in outcome.output


def test_a_file_or_an_episode_that_is_not_there_is_an_error(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="give a run's folder"):
        replay_all(tmp_path / "nothing.jsonl")
    with pytest.raises(DataError, match="episode 'nobody'"):
        replay_all(recorded, "nobody")
    record = records_of(recorded)[0]
    record["env"]["name"] = "visual/no_such"
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(ConfigError, match="no_such"):
        replay_all(tmp_path / "a.jsonl")
