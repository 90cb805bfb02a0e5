"""Scoring an old run again: what a rollouts file holds is enough, or it is said what is missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import builders
import numpy as np
import pytest

from vlrl.check.rescore.rescore import options_in, rescore
from vlrl.errors import ConfigError, DataError
from vlrl.scoring.functions import find_reward
from vlrl.tracking.rollouts.records import rollout_records, write_rollouts
from vlrl.types import Group, Media, Score

BOX = [10, 20, 50, 60]
NEW_KEYS = ("kind", "num_frames", "original_size", "coordinate_frame", "timestamps_s", "fps")


class Tokens:
    def token_texts(self, token_ids: Any) -> list[str]:
        return [str(token) for token in token_ids]


def said(text: str) -> str:
    return f"<think></think><answer>{text}</answer>"


def write_run(folder: Path, answers: list[str], *, answer: Any = "8", video: bool = False) -> Path:
    """A group of one sample, each member scored 1 if it said 8."""
    frames = np.stack([builders.random_image(56, 84, seed) for seed in range(3 if video else 1)])
    kind, times = ("video", (0.0, 0.5, 1.0)) if video else ("image", ())
    media = Media(kind, "a" * 64, frames, (112, 168), (1, 4, 6), 6, times, 2.0 if video else None, "per_1000")  # type: ignore[arg-type]
    sample = builders.make_sample(
        id="q", answer=answer, media=(media,), metadata={"digits": (3, 5), "weights": np.array([1.5, 2.5])}
    )
    members = [
        builders.make_trajectory(sample, range(len(text)), index=index, completion=text)
        for index, text in enumerate(answers)
    ]
    for member in members:
        value = float(member.completion == said("8"))
        member.score = Score(value, {"answer_exact": value})
    path = folder / "rollouts" / "after.jsonl"
    path.parent.mkdir(parents=True)
    records = rollout_records([Group(members)], Tokens(), phase="after", step=3)  # type: ignore[arg-type]
    write_rollouts(path, records, [media])
    return path


def rewrite(path: Path, change: Any) -> None:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for record in records:
        change(record)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_the_same_reward_changes_nothing(tmp_path: Path) -> None:
    path = write_run(tmp_path, [said("8"), said("9"), "8"])
    result = rescore(find_reward("answer_exact"), path)
    assert result["old"] == "the part 'answer_exact'"
    assert (result["old_mean"], result["new_mean"]) == (1 / 3, 1 / 3)
    assert (result["num_changed"], result["num_pairs_turned"], result["num_failed"]) == (0, 0, 0)
    assert result["correlation"] == pytest.approx(1.0)


def test_another_reward_names_the_rows_that_change_most(tmp_path: Path) -> None:
    path = write_run(tmp_path, [said("8"), said("6"), "8", said("1")])
    result = rescore(find_reward("numeric_closeness"), path)
    assert result["old"] == "the total reward"
    assert [(row["completion"], row["new"]) for row in result["changed"]] == [
        (said("6"), 0.75),
        (said("1"), 0.125),
    ]
    assert result["new_mean"] == pytest.approx((1 + 0.75 + 0.125) / 4)
    assert 0 < result["correlation"] < 1


def test_pairs_of_a_group_that_change_places_are_counted(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def other_way(completion, answer):\n    return float(answer not in completion)\n"
    )
    path = write_run(tmp_path, [said("8"), said("9"), said("7")])
    result = rescore(find_reward(f"{tmp_path}/mine.py:other_way"), path)
    assert result["num_pairs_turned"] == 2
    assert result["correlation"] == pytest.approx(-1.0)


def test_metadata_tokens_and_prompt_are_given(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def all_of_it(completion, answer, digits, weights, *, num_tokens, completion_ids, step, prompt,"
        " sample):\n"
        "    assert list(digits) == [3, 5] and list(weights) == [1.5, 2.5] and step == 3\n"
        "    assert completion_ids == list(range(num_tokens)) and sample.id == 'q'\n"
        "    assert sample.prompt.token_ids.tolist() == [1, 2, 3] and list(prompt) == []\n"
        "    return float(num_tokens)\n"
    )
    path = write_run(tmp_path, ["abcd", "ab"])
    result = rescore(find_reward(f"{tmp_path}/mine.py:all_of_it"), path)
    assert result["failed"] == []
    assert result["new_mean"] == 3.0


def test_an_episodes_return_and_success_are_kept(tmp_path: Path) -> None:
    path = write_run(tmp_path, ["up", "down", "left"])
    given = iter([(1.0, 1.0), (0.25, 0.0), (0.5, 1.0)])

    def play(record: dict[str, Any]) -> None:
        record["episode_return"], record["info"]["success"] = next(given)

    rewrite(path, play)
    assert rescore(find_reward("episode_return"), path)["new_mean"] == pytest.approx(1.75 / 3)
    assert rescore(find_reward("success"), path)["new_mean"] == pytest.approx(2 / 3)


def test_boxes_are_scored_in_the_frame_of_the_run(tmp_path: Path) -> None:
    """Original 168×112; the model spoke thousandths."""
    thousandths = json.dumps([10 / 168 * 1000, 20 / 112 * 1000, 50 / 168 * 1000, 60 / 112 * 1000])
    path = write_run(tmp_path, [said(thousandths), said(json.dumps(BOX))], answer=BOX)
    result = rescore(find_reward("box_iou"), path)
    assert result["changed"][0]["new"] == pytest.approx(1.0)
    assert result["new_mean"] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("video", [False, True])
def test_pixels_come_from_the_runs_media(tmp_path: Path, video: bool) -> None:
    (tmp_path / "mine.py").write_text(
        "def brightness(completion, answer, media):\n"
        "    (medium,) = media\n"
        "    assert medium.original_size == (112, 168) and medium.size == (56, 84)\n"
        "    assert len(medium.timestamps_s) == (len(medium.frames) if medium.kind == 'video' else 0)\n"
        "    return float(medium.frames[-1].mean())\n"
    )
    path = write_run(tmp_path, ["x", "y"], video=video)
    result = rescore(find_reward(f"{tmp_path}/mine.py:brightness"), path)
    assert result["failed"] == []
    assert result["new_mean"] == pytest.approx(builders.random_image(56, 84, 2 if video else 0).mean())
    (tmp_path / "media" / f"{'a' * 64}.png").unlink()
    with pytest.raises(DataError, match=r"\.png is missing"):
        rescore(find_reward(f"{tmp_path}/mine.py:brightness"), path)


def test_a_file_of_an_older_version_is_read(tmp_path: Path) -> None:
    path = write_run(tmp_path, [said("8"), said("9")])

    def age(record: dict[str, Any]) -> None:
        del record["metadata"], record["turns"]
        record |= record.pop("ledgers")[0]
        for key in NEW_KEYS:
            del record["media"][0][key]

    rewrite(path, age)
    assert rescore(find_reward("answer_exact"), path)["num_changed"] == 0
    (tmp_path / "counts.py").write_text("def tokens(completion, *, num_tokens):\n    return num_tokens\n")
    assert rescore(find_reward(f"{tmp_path}/counts.py:tokens"), path)["new_mean"] == len(said("8"))
    with pytest.raises(ConfigError, match="original sizes"):
        rescore(find_reward("box_iou"), path)
    (tmp_path / "mine.py").write_text(
        "def wants(completion, answer, digits):\n    return float(sum(digits))\n"
    )
    wants = find_reward(f"{tmp_path}/mine.py:wants")
    with pytest.raises(ConfigError, match="--config"):
        rescore(wants, path)
    row = {"id": "q", "messages": [{"role": "user", "content": "?"}], "metadata": {"digits": [4, 5]}}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    config = tmp_path / "config.yaml"
    config.write_text(f"model: {{path: x}}\ndata: {{train: {{name: {tmp_path}/rows.jsonl}}}}\n")
    assert rescore(wants, path, config)["new_mean"] == 9.0
    rewrite(path, lambda record: record.update(sample_id="another"))
    with pytest.raises(DataError, match="is it the config of this run"):
        rescore(wants, path, config)


def test_what_cannot_be_scored_is_a_failure_and_no_zero(tmp_path: Path) -> None:
    path = write_run(tmp_path, [said("8"), said("9")], answer="no number")
    result = rescore(find_reward("numeric"), path)
    assert (result["num_scored"], result["num_failed"], result["new_mean"]) == (0, 2, None)
    assert "no number" in result["failed"][0]["why"]


def test_what_a_file_does_not_keep_is_said(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def f(completion, answer, trajectory):\n    return 0.0\n")
    path = write_run(tmp_path, ["x"])
    with pytest.raises(ConfigError, match="'trajectory', which a rollouts file does not keep"):
        rescore(find_reward(f"{tmp_path}/mine.py:f"), path)
    with pytest.raises(ConfigError, match="does not exist"):
        rescore(find_reward("answer_exact"), tmp_path / "gone.jsonl")
    path.write_text('{"completion": "x"}\n{"comp')
    with pytest.raises(DataError, match=r"after\.jsonl:2: not JSON"):
        rescore(find_reward("answer_exact"), path)


def test_the_runs_options_are_taken(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    tree = "model: {path: x}\ndata: {train: {name: digit_sum}}\n"
    tree += "rewards:\n  - {name: numeric, options: {absolute: 2}}\n"
    config.write_text(tree)
    assert options_in(config, "numeric") == {"absolute": 2}
    assert options_in(config, "math") == {}
    config.write_text(tree + "  - {name: numeric, options: {absolute: 3}}\n")
    with pytest.raises(ConfigError, match="different options"):
        options_in(config, "numeric")
