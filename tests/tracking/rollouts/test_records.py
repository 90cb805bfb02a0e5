import json

import numpy as np
import pytest
from kept_rollouts import FakeProcessor, make_episode, make_group
from PIL import Image

from vlrl.tracking.rollouts.read import read_rollouts
from vlrl.tracking.rollouts.records import rollout_records, write_rollouts
from vlrl.types import (
    Group,
    Media,
    Prompt,
    Sample,
    Trajectory,
)


def test_a_record_holds_the_ledger_with_its_mask_and_score():
    group = make_group()
    first, second = rollout_records([group], FakeProcessor(), phase="after", step=9)
    assert first["sample_id"] == "digit_sum/heldout/0"
    assert (first["phase"], first["step"], first["group_index"], second["group_index"]) == ("after", 9, 0, 1)
    (ledger,) = first["ledgers"]
    assert ledger["token_ids"] == [1, 2, 3, 4, 5]
    assert ledger["token_texts"] == ["<1>", "<2>", "<3>", "<4>", "<5>"]
    assert ledger["loss_mask"] == [0, 0, 0, 1, 1]
    assert ledger["sampler_logprobs"] == [0.0, 0.0, 0.0, -0.5, None]
    assert (first["reward"], first["parts"]) == (1.5, {"exact": 1.0, "format": 0.5})
    assert (first["advantage"], second["advantage"]) == (0.5, -0.5)
    assert first["weight_version"] == 7
    assert first["messages"][0]["content"][0] == {"type": "image"}
    assert first["media"][0] == {
        "sha256": "a" * 64,
        "path": f"media/{'a' * 64}.png",
        "width": 56,
        "height": 56,
        "kind": "image",
        "num_frames": 1,
        "original_size": [56, 56],
        "coordinate_frame": "",
        "timestamps_s": [],
        "fps": None,
    }
    json.dumps(first, allow_nan=False)


def test_an_episode_is_told_turn_by_turn_over_all_its_ledgers():
    group = make_episode()
    (record,) = rollout_records([group], FakeProcessor(), phase="train", step=0)
    assert record["env"] == {"name": "visual/mazes", "options": {"level": 2}, "task": {}, "seed": 7}
    assert (record["episode_return"], record["info"], record["duration_s"]) == (0.5, {"success": 1.0}, 1.235)
    assert [m["sha256"][0] for m in record["media"]] == ["a", "b", "c"]
    assert [turn["media"] for turn in record["turns"]] == [[0], [0], [0, 1, 2]]
    assert [turn["ledger"] for turn in record["turns"]] == [0, 0, 1]
    assert [turn["text"] for turn in record["turns"]] == ["left", "??", "up"]
    assert [turn["reward"] for turn in record["turns"]] == [0.0, -0.5, 1.0]
    assert [turn["invalid"] for turn in record["turns"]] == [False, True, False]
    assert [turn["finished"] for turn in record["turns"]] == [True, True, False]
    # The first action is not trained; the second's tokens have 4 and 5.
    assert [turn["advantage"] for turn in record["turns"]] == [None, 4.5, 3.0]
    assert record["advantage"] == 4.0
    assert [ledger["loss_mask"] for ledger in record["ledgers"]] == [[0, 0, 1, 0, 1, 1], [0, 0, 0, 1]]
    json.dumps(record, allow_nan=False)


def test_an_episode_that_never_began_is_a_record_too():
    prompt = Prompt(np.arange(2), np.arange(2), np.zeros((3, 2), np.int64), 2)
    failed = Trajectory(Sample("m", (), (), prompt), 0, (), "", "env_error", failure="reset raised")
    (record,) = rollout_records([Group([failed])], FakeProcessor(), phase="train", step=0)
    assert (record["turns"], record["ledgers"], record["failure"]) == ([], [], "reset raised")
    assert record["advantage"] is None and record["reward"] is None


def test_a_record_from_before_there_were_episodes_reads_the_same(tmp_path):
    (record, _) = rollout_records([make_group()], FakeProcessor(), phase="after", step=9)
    newer = ("turns", "ledgers", "env", "failure", "episode_return", "info", "duration_s", "end")
    flat = {key: value for key, value in record.items() if key not in newer} | record["ledgers"][0]
    (tmp_path / "old.jsonl").write_text(json.dumps(flat) + "\n")
    (read,) = read_rollouts(tmp_path / "old.jsonl")
    assert (read["turns"], read["ledgers"]) == (record["turns"], record["ledgers"])
    assert read.keys() <= record.keys()


def test_an_unscored_trajectory_has_no_reward_rather_than_zero():
    record = rollout_records([make_group(scored=False)], FakeProcessor(), phase="train", step=0)[0]
    assert record["reward"] is None and record["parts"] == {} and record["advantage"] is None


def test_images_are_written_once_next_to_the_rollouts(tmp_path):
    group = make_group()
    records = rollout_records([group], FakeProcessor(), phase="before", step=0)
    path = tmp_path / "rollouts" / "before.jsonl"
    write_rollouts(path, records, [m for t in group.trajectories for m in t.media])
    assert read_rollouts(path) == records
    images = sorted((tmp_path / "media").iterdir())
    assert [p.name for p in images] == ["a" * 64 + ".png", "b" * 64 + ".png"]
    saved = np.asarray(Image.open(tmp_path / records[0]["media"][0]["path"]))
    np.testing.assert_array_equal(saved, group.trajectories[0].media[0].frames[0])
    assert not list(tmp_path.rglob("*.part"))


def test_the_frames_of_a_video_lie_side_by_side(tmp_path):
    frames = np.stack([np.full((4, 6, 3), v, np.uint8) for v in (10, 200)])
    video = Media("video", "c" * 64, frames, (4, 6), (1, 2, 2), 1, (0.0, 1.0))
    write_rollouts(tmp_path / "out.jsonl", [], [video])
    saved = np.asarray(Image.open(tmp_path / "media" / ("c" * 64 + ".png")))
    assert saved.shape == (4, 12, 3) and saved[0, 0, 0] == 10 and saved[0, -1, 0] == 200


@pytest.mark.parametrize(("append", "count"), [(False, 2), (True, 4)])
def test_a_file_is_replaced_or_appended_to(tmp_path, append, count):
    records = rollout_records([make_group()], FakeProcessor(), phase="train", step=0)
    for _ in range(2):
        write_rollouts(tmp_path / "train.jsonl", records, [], append=append)
    assert len(read_rollouts(tmp_path / "train.jsonl")) == count


def test_odd_characters_in_a_completion_come_back_unchanged(tmp_path):
    record = {"completion": "a\nb\u2028c\u0085d\r\ud83d"}
    write_rollouts(tmp_path / "x.jsonl", [record], [])
    assert read_rollouts(tmp_path / "x.jsonl") == [record]


def test_a_line_cut_short_is_skipped_and_a_missing_file_is_empty(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"a": 1}\n{"a": ')
    assert read_rollouts(tmp_path / "x.jsonl") == [{"a": 1}]
    assert read_rollouts(tmp_path / "none.jsonl") == []
