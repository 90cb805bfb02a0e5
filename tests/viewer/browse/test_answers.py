"""The JSON that the page shows: curves with axes, light rows, whole rollouts, what there is of each run."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from viewed_run import HOSTILE, RunWriter, write_viewed_run

from vlrl.errors import ConfigError, DataError
from vlrl.viewer.browse.answers import ViewAnswers
from vlrl.viewer.browse.curves import MAX_POINTS, curves


@pytest.fixture(scope="module")
def answers(run_dirs: list[Path]) -> ViewAnswers:
    return ViewAnswers(run_dirs)


def test_manifest_says_what_there_is_and_which_runs_are_seeds_of_one(answers: ViewAnswers) -> None:
    first, second, faster = answers.answer("manifest")["runs"]
    assert [run["key"] for run in (first, second, faster)] == ["grpo_s0", "grpo_s1", "faster"]
    assert first["group"] == second["group"] == 0 and faster["group"] is None
    assert first["is_done"] and not faster["is_done"]
    assert [step for step, _, _ in faster["steps"]] == list(range(12)) and faster["steps"][0][1] == 24
    assert first["tone"] == "good" and "rose from 0.310 to 0.840" in first["verdict"]
    exact, tags = first["parts"]
    assert exact["name"] == "answer_exact" and "answer" in exact["words"].lower()
    assert tags["words"] == "A reward of your own: ./format.py:tags" and tags["weight"] == "0.1"


def test_axes_count_from_the_beginning_to_the_end_of_a_step() -> None:
    lines: list[dict[str, float | None]] = [
        {"step": 0, "reward/mean": 0.1, "time_s/step": 1800.0, "throughput/tokens_per_s": 10.0},
        {"step": 1, "reward/mean": None, "time_s/step": 1800.0, "throughput/tokens_per_s": 20.0},
    ]
    answer = curves(lines, samples_per_step=32)
    assert answer["axes"] == {
        "step": [0, 1],
        "samples": [32, 64],
        "tokens": [18000, 54000],
        "hours": [0.5, 1.0],
    }
    assert answer["series"]["reward/mean"] == [0.1, None]
    assert answer["meanings"]["reward/mean"].startswith("Mean reward")
    assert list(curves(lines[:1], None)["axes"]) == ["step", "tokens", "hours"]
    assert curves([], None)["series"] == {}


def test_a_long_run_is_averaged() -> None:
    lines = [{"step": s, "reward/mean": float(s)} for s in range(3 * MAX_POINTS)]
    answer = curves(lines, None)
    assert answer["steps_per_point"] == 3 and len(answer["series"]["reward/mean"]) == MAX_POINTS
    assert answer["series"]["reward/mean"][:2] == [1.0, 4.0] and answer["axes"]["step"][:2] == [0, 3]


def test_light_rows_say_what_the_list_shows(answers: ViewAnswers) -> None:
    index = answers.answer("faster/index/3-4")
    assert index["step"] == [3] * 24 + [4] * 24 and index["row"] == [*range(24), *range(24)]
    assert index["question"][0].startswith("How many ") and len(index["image"][0]) == 64
    assert index["outcome"][23] == "env_error" and "exit code 139" in index["failure"][23]
    assert index["frames"][16] == 8 and index["parts"]["success"][20] == 1.0
    assert index["parts"]["answer_exact"][20] is None  # another reward's part


def test_search_reads_whole_turns(answers: ViewAnswers) -> None:
    texts = answers.answer("faster/texts/11-11")["11"]
    assert "next i typetext" in texts[20] and "desk-" in texts[20]


def test_a_rollout_whole(answers: ViewAnswers) -> None:
    rollout = answers.answer("faster/rollout/0/21")
    click, drag, scroll, typed = rollout["turns"]
    assert (
        click["gesture"]["kind"] == "click"
        and click["gesture"]["rings"] == 2
        and click["gesture"]["box"] == [110, 100, 100, 40]
    )
    assert drag["gesture"]["kind"] == "path" and len(drag["gesture"]["points"]) == 4
    assert scroll["gesture"]["towards"] == [0.0, 1.0] and typed["gesture"]["typed"] == "hello world"
    assert [turn["shown"] for turn in rollout["turns"]] == [[0], [1], [2], [3]] and rollout["end"] == [4]
    assert rollout["media"][0]["original"] == [800, 600] and not rollout["media"][0]["missing"]
    ledger = rollout["ledgers"][0]
    sizes = {
        name: len(ledger[name])
        for name in ("texts", "ids", "mask", "logprob", "ratio", "version", "entropy", "advantage")
    }
    assert len(set(sizes.values())) == 1, sizes
    generated = [i for i, here in enumerate(ledger["mask"]) if here]
    assert all(ledger["logprob"][i] is not None and ledger["entropy"][i] is not None for i in generated)
    assert set(ledger["version"]) == {None, 3, 4}


def test_a_videos_frames_keep_their_times(answers: ViewAnswers) -> None:
    (medium,) = answers.answer("faster/rollout/0/16")["media"]
    assert medium["frames"] == 8 and medium["width"] == 224 and medium["times"][:3] == [0.0, 0.5, 1.0]


def test_hostile_text_is_json(answers: ViewAnswers) -> None:
    rollout = answers.answer("grpo_s0/rollout/39/12")
    assert HOSTILE[:60] in rollout["completion"]
    json.dumps(rollout, allow_nan=False)


def test_timeline_of_the_last_steps(answers: ViewAnswers) -> None:
    timeline = answers.answer("grpo_s0/timeline")
    assert timeline["steps"] == list(range(30, 40)) and timeline["spans"][0][:4] == [
        "trainer",
        "generate",
        0.0,
        0.6,
    ]


@pytest.mark.parametrize(
    "path",
    [
        "nope/curves",
        "faster",
        "faster/secrets",
        "faster/rollout/0/99",
        "faster/rollout/99/0",
        "faster/rollout/-1/0",
        "faster/index/0-../x",
    ],
)
def test_there_is_nothing_else(answers: ViewAnswers, path: str) -> None:
    with pytest.raises(DataError):
        answers.answer(path)


def test_new_steps_are_seen(tmp_path: Path) -> None:
    writer = write_viewed_run(tmp_path / "live", 2)
    answers = ViewAnswers([tmp_path / "live"])
    (before,) = answers.answer("manifest")["runs"]
    writer.step(2, [writer.question(5, 0.5)])
    (after,) = answers.answer("manifest")["runs"]
    assert [step for step, _, _ in after["steps"]] == [0, 1, 2] and after["metrics"] != before["metrics"]
    assert (
        len(answers.answer("live/index/2-2")["row"]) == 4
        and len(answers.answer("live/curves")["axes"]["step"]) == 3
    )


def test_a_damaged_step_is_left_out(tmp_path: Path) -> None:
    write_viewed_run(tmp_path / "run", 3).close()
    (tmp_path / "run" / "rollouts" / "train" / "000001.parquet").write_bytes(b"PAR1 not at all")
    answers = ViewAnswers([tmp_path / "run"])
    (run,) = answers.answer("manifest")["runs"]
    assert [step for step, _, _ in run["steps"]] == [0, 2]
    assert len(answers.answer("run/index/0-9")["row"]) == 48 and answers.answer("run/health")["failures"]


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"not a run's folder.*first step is not done"):
        ViewAnswers([tmp_path])
    with pytest.raises(ConfigError, match="is not a folder"):
        ViewAnswers([tmp_path / "nowhere"])


def test_runs_of_one_name_and_odd_names_have_keys_of_their_own(tmp_path: Path) -> None:
    folders = [tmp_path / "a" / "run", tmp_path / "b" / "run", tmp_path / "b" / "<img src=x>"]
    RunWriter(folders[0]).log(0)
    for folder in folders[1:]:
        shutil.copytree(folders[0], folder)
    keys = list(ViewAnswers(folders).runs)
    assert keys == ["run", "run-2", "img-src-x"]


def test_a_run_without_rollouts_has_curves(tmp_path: Path) -> None:
    RunWriter(tmp_path / "sft").log(0)
    answers = ViewAnswers([tmp_path / "sft"])
    (run,) = answers.answer("manifest")["runs"]
    assert run["steps"] == [] and answers.answer("sft/index/0-5") == {"parts": {}}
    assert answers.answer("sft/curves")["series"] and answers.answer("sft/timeline")["spans"] == []


def numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [n for each in value.values() for n in numbers(each)]
    if isinstance(value, list):
        return [n for each in value for n in numbers(each)]
    return [value] if isinstance(value, float) else []


def test_no_answer_has_a_number_that_json_has_not(answers: ViewAnswers) -> None:
    for path in ("manifest", "grpo_s1/curves", "grpo_s1/health", "grpo_s1/index/0-39", "grpo_s1/rollout/5/3"):
        assert all(n == n and abs(n) != float("inf") for n in numbers(answers.answer(path)))
