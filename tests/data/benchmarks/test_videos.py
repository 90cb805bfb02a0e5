"""MVBench, Video-MME and Charades-STA as they are published; no video is opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from published import media_of, opened, text_of, write_image, write_json, write_table

from vlrl.errors import ConfigError, DataError


def test_mvbench_knows_where_each_tasks_videos_lie(tmp_path: Path) -> None:
    question = {
        "question": "What happened?",
        "candidates": ["Put down.", "Opened.", "Threw."],
        "answer": "Opened.",
    }
    write_json(
        tmp_path / "json" / "action_sequence.json",
        [{**question, "video": "ZS9XR.mp4", "start": 11.1, "end": 17.2, "accurate_start": 11.1}],
    )
    write_json(
        tmp_path / "json" / "episodic_reasoning.json",
        [{**question, "video": "friends_s01e01", "start": 1, "end": 2, "fps": 3}],
    )
    for number in range(9):
        write_image(tmp_path / "video" / "tvqa" / "frames_fps3_hq" / "friends_s01e01" / f"{number:05d}.jpg")
    found = opened("mvbench", tmp_path)
    assert [row["metadata"]["task"] for row in found.rows] == ["action_sequence", "episodic_reasoning"]
    clip, frames = found.rows
    assert text_of(clip) == (
        "Question: What happened?\nOptions:\n(A) Put down.\n(B) Opened.\n(C) Threw.\n"
        "Only give the best option."
    )
    assert clip["messages"][0]["role"] == "system"
    (part, _) = clip["messages"][1]["content"]
    assert (part["start_s"], part["end_s"]) == (11.1, 17.2)
    assert part["video"] == str(tmp_path / "video" / "star" / "Charades_v1_480" / "ZS9XR.mp4")
    (seen,) = media_of(frames)
    assert [Path(name).stem for name in seen] == ["00003", "00004", "00005", "00006"]
    assert frames["messages"][1]["content"][0]["fps"] == 3
    for right in ("B", "(B)", "(b) Opened.", "B."):
        assert found.total(0, right) == 1, right
    for wrong in ("A", "(", ".", "The answer is B", "(C) Opened."):
        assert found.total(0, wrong) == 0, wrong
    assert len(opened("mvbench", tmp_path, tasks=["action_sequence"]).rows) == 1
    with pytest.raises(ConfigError, match="there is no task 'cooking'"):
        opened("mvbench", tmp_path, tasks=["cooking"])


def test_videomme_asks_for_a_letter(tmp_path: Path) -> None:
    write_table(
        tmp_path / "videomme" / "test-00000-of-00001.parquet",
        {
            "video_id": "001",
            "duration": "short",
            "domain": "Knowledge",
            "sub_category": "Humanity & History",
            "url": "https://example.org/fFjv93ACGo8",
            "videoID": "fFjv93ACGo8",
            "question_id": "001-1",
            "task_type": "Counting Problem",
            "question": "How many?",
            "options": ["A. 1.", "B. 2.", "C. 3.", "D. 4."],
            "answer": "C",
        },
    )
    found = opened("videomme", tmp_path)
    (row,) = found.rows
    assert text_of(row).endswith("How many?\nA. 1.\nB. 2.\nC. 3.\nD. 4.\nThe best answer is:")
    assert media_of(row) == [str(tmp_path / "data" / "fFjv93ACGo8.mp4")]
    assert row["metadata"]["duration"] == "short"
    assert found.total(0, "C. 3.") == found.total(0, "The best answer is C") == 1
    assert found.total(0, "A or C") == found.total(0, "three") == 0


def test_charades_sta_measures_the_moment(tmp_path: Path) -> None:
    lines = "3MSZA 24.3 30.4##person turn a light on.\n\n3MSZA 0.0 10.0##person opens a door.\n"
    (tmp_path / "charades_sta_test.txt").write_text(lines)
    found = opened("charades_sta", tmp_path)
    assert [row["answer"] for row in found.rows] == [[24.3, 30.4], [0.0, 10.0]]
    assert '"person opens a door."' in text_of(found.rows[1])
    assert media_of(found.rows[0]) == [str(tmp_path / "Charades_v1_480" / "3MSZA.mp4")]
    score = found.score(1, "It happens from 5.00 to 10.00.")
    assert score.total == pytest.approx(0.5)
    notes = {name.rpartition("R1@")[2]: value for name, value in score.parts.items() if "R1@" in name}
    assert notes == {"0.3": 1, "0.5": 1, "0.7": 0}
    assert found.total(1, "never") == 0
    (tmp_path / "charades_sta_test.txt").write_text("3MSZA 24.3##person turn a light on.\n")
    with pytest.raises(DataError, match=r"charades_sta_test\.txt:1: .* is not VIDEO START END##SENTENCE"):
        opened("charades_sta", tmp_path)
