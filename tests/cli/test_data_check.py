"""`vlrl data check`: what is wrong with data is found, named, counted and left out of the cleaned file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import builders
import pytest
import videos
from PIL import Image
from sounds import tone, write_sound

ROOT = Path(__file__).parents[2]
Row = dict[str, Any]


def write_image(path: Path, seed: int, size: tuple[int, int] = (60, 80)) -> str:
    Image.fromarray(builders.random_image(*size, seed=seed)).save(path)
    return path.name


def make_row(number: int, image: str | None, text: str = "How many?", **fields: Any) -> Row:
    media = [{"type": "image", "image": image}] if image else []
    content = [*media, {"type": "text", "text": text}]
    return {"id": f"r{number}", "messages": [{"role": "user", "content": content}], "answer": "3", **fields}


def good_rows(folder: Path, count: int, first_seed: int = 0) -> list[Row]:
    return [make_row(i, write_image(folder / f"{first_seed}_{i}.png", first_seed + i)) for i in range(count)]


def write_rows(path: Path, rows: Sequence[Row | str]) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path


def write_config(folder: Path, **sections: Any) -> Path:
    tree: dict[str, Any] = {
        "model": {"path": "models/not_there"},
        "data": {"train": {"name": str(folder / "rows.jsonl")}},
        "media": {"cache_dir": str(folder / "cache")},
    }
    path = folder / "run.yaml"
    path.write_text(json.dumps({**tree, **sections}))  # JSON is YAML
    return path


def write_reward(folder: Path, body: str, signature: str = "completion, answer") -> dict[str, str]:
    file = folder / "my_reward.py"
    file.write_text(f"import os, signal, time\n\n\ndef score({signature}):\n    {body}\n")
    return {"name": f"{file}:score"}


def reasons(result: dict[str, Any]) -> dict[str, list[str]]:
    return {row["id"]: [p["reason"] for p in row["problems"]] for row in result["bad"]}


def test_clean_data_is_called_clean(vlrl: Any, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", good_rows(tmp_path, 5))
    result = vlrl("data", "check", file, "--json")
    assert result.code == 0, result.err
    assert result.json["ok"]
    (source,) = result.json["sources"]
    assert (source["num_rows"], source["num_ok"], source["num_images"]) == (5, 5, 5)
    assert source["pixels"] == {"min": [80, 60], "median": [80, 60], "max": [80, 60]}
    assert source["tokens"] is None
    assert "clean: 5 rows" in result.err
    assert "give one with --model" in result.err


def test_a_form_that_no_completion_can_have_is_named(vlrl: Any, tmp_path: Path) -> None:
    rows = good_rows(tmp_path, 5)
    rows[1]["structured_outputs"] = {"regex": "[0-9]+"}
    rows[2]["structured_outputs"] = {"regex": "[0-9"}
    rows[3]["structured_outputs"] = {"regexp": "[0-9]"}
    rows[4]["structured_outputs"] = {"json_schema": {"type": "integer", "multipleOf": 3}}  # to vLLM alone
    file = write_rows(tmp_path / "rows.jsonl", rows)
    result = vlrl("data", "check", file, "--json")
    assert result.code == 1
    assert [row["row"] for row in result.json["bad"]] == [2, 3, 4]
    said = [row["problems"][0]["message"] for row in result.json["bad"]]
    assert "rows.jsonl:3: structured_outputs.regex: " in said[0] and "Unclosed" in said[0]
    assert "rows.jsonl:4: structured_outputs.regexp: " in said[1]
    assert "'r4': structured_outputs.json_schema: " in said[2]


def test_every_bad_row_is_named_and_left_out(vlrl: Any, tmp_path: Path) -> None:
    rows: list[Row | str] = [*good_rows(tmp_path, 4)]
    (tmp_path / "cut.jpg").write_bytes(b"\xff\xd8\xff\xe0 no more")
    (tmp_path / "half.png").write_bytes((tmp_path / "0_0.png").read_bytes()[:2000])
    rows += [
        make_row(4, "cut.jpg"),
        make_row(5, "half.png"),
        make_row(6, "gone.png"),
        make_row(7, "0_1.png"),
        make_row(8, "0_2.png", answer="4"),
        "{not json",
        {"id": "r10", "messages": [], "metadata": 5},
        make_row(11, "0_1.png", "another question"),
    ]
    file = write_rows(tmp_path / "rows.jsonl", rows)
    result = vlrl("data", "check", file, "--json", "--clean", "good.jsonl", "--workers", 2)
    assert result.code == 1
    found = reasons(result.json)
    broken = ["broken medium"]
    assert found.pop("row 9") == found.pop("row 10") == ["unreadable row"]
    assert found == {"r4": broken, "r5": broken, "r6": broken, "r7": ["duplicate"], "r8": ["contradiction"]}
    assert [row["row"] for row in result.json["bad"]] == [4, 5, 6, 7, 8, 9, 10]
    (source,) = result.json["sources"]
    assert source["bad_by_reason"]["broken medium"] == 3
    places = {row["id"]: row["place"] + row["problems"][0]["message"] for row in result.json["bad"]}
    assert all(f"rows.jsonl:{row['row'] + 1}" in places[row["id"]] for row in result.json["bad"])
    assert "'r1'" in places["r7"]

    kept = (tmp_path / "good.jsonl").read_text().splitlines()
    assert kept == [json.dumps(rows[i]) for i in (0, 1, 2, 3, 11)]
    assert vlrl("data", "check", "good.jsonl").code == 0


def test_two_rows_of_one_id_are_not_clean(vlrl: Any, tmp_path: Path) -> None:
    rows = [make_row(i % 3, None, f"question {i}") for i in range(4)]
    rows += [make_row(1, None, "question 1")]  # repeated whole: one reason is enough
    file = write_rows(tmp_path / "rows.jsonl", rows)
    result = vlrl("data", "check", file, "--json")
    assert result.code == 1
    assert [(row["row"], [p["reason"] for p in row["problems"]]) for row in result.json["bad"]] == [
        (3, ["duplicate id"]),
        (4, ["duplicate"]),
    ]
    assert (
        "the id of 'r0' (data.train, row 0), another row" in result.json["bad"][0]["problems"][0]["message"]
    )


def test_a_cleaned_file_elsewhere_says_where_its_images_are(vlrl: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    file = write_rows(tmp_path / "data" / "rows.jsonl", good_rows(tmp_path / "data", 2))
    result = vlrl("data", "check", file, "--json", "--clean", "good.jsonl")
    (written,) = result.json["clean"]
    assert written["image_root"] == str(tmp_path / "data")
    assert vlrl("data", "check", "good.jsonl").code == 1
    assert vlrl("data", "check", "good.jsonl", f"options.image_root={written['image_root']}").code == 0


def test_rows_that_are_no_lines_are_cleaned_into_vlrls_shape(vlrl: Any, tmp_path: Path) -> None:
    config = write_config(tmp_path, data={"train": {"name": "digit_sum", "options": {"num_rows": 6}}})
    result = vlrl("data", "check", config, "--json", "--clean", "out/good.jsonl")
    assert result.code == 0, result.err
    assert len(list((tmp_path / "out" / "good_media").glob("*.png"))) > 6
    assert vlrl("data", "check", "out/good.jsonl", "--json").json["num_rows"] == 6
    first = json.loads((tmp_path / "out" / "good.jsonl").read_text().splitlines()[0])
    assert first["id"] == "digit_sum/train/0"


def test_the_source_is_never_overwritten(vlrl: Any, tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", good_rows(tmp_path, 1))
    before = file.read_bytes()
    result = vlrl("data", "check", file, "--clean", file)
    assert result.code == 1
    assert "is the source itself" in result.err
    assert file.read_bytes() == before


def test_leaks_are_told_apart_and_charged_to_the_rows_to_train_on(vlrl: Any, tmp_path: Path) -> None:
    train = good_rows(tmp_path, 4)
    held = [
        make_row(20, "0_0.png", "  how MANY? "),  # word for word, but for case and spaces
        make_row(21, "0_1.png", "Which colour?"),  # the image only
        make_row(22, write_image(tmp_path / "new.png", 99)),
    ]
    write_rows(tmp_path / "rows.jsonl", train)
    write_rows(tmp_path / "held.jsonl", held)
    names = {"train": {"name": str(tmp_path / "rows.jsonl")}, "eval": {"name": str(tmp_path / "held.jsonl")}}
    config = write_config(tmp_path, data=names)
    result = vlrl("data", "check", config, "--json")
    assert result.code == 1
    assert reasons(result.json) == {
        "r0": ["in the held-out rows"],
        "r1": ["medium in the held-out rows"],
    }
    assert result.json["overlap"] == {"rows_in_both_splits": 1, "media_in_both_splits": 2}
    assert vlrl("data", "check", config, "--split", "train").code == 0


def test_episodes_that_begin_alike_are_not_the_same(vlrl: Any, tmp_path: Path) -> None:
    """Four openings, 60 episodes: not one is a duplicate or a leak, unless its seed is there twice."""

    def rows(split: str) -> dict[str, Any]:
        options = {
            "env": "visual/sliding_puzzle",
            "options": {"image_size": 96},
            "num_rows": 30,
            "split": split,
        }
        return {"name": "env", "options": options}

    config = write_config(
        tmp_path, data={"train": rows("train"), "eval": rows("heldout")}, rewards=[{"name": "success"}]
    )
    result = vlrl("data", "check", config, "--json")
    assert (result.code, result.json["num_rows"]) == (0, 60), result.err
    twice = [rows("train"), rows("train")]
    config = write_config(tmp_path, data={"train": twice}, rewards=[{"name": "success"}])
    found = reasons(vlrl("data", "check", config, "--json").json)
    assert len(found) == 30
    assert set(map(tuple, found.values())) == {("duplicate",)}


@pytest.mark.parametrize(
    ("body", "signature", "reason"),
    [
        ("return 1 / len(completion)", "completion, answer", "reward fails"),
        ("return 1.0 if completion else 1 / 0", "completion, answer", "reward fails"),
        ("return float('nan')", "completion, answer", "reward fails"),
        ("return 1.0", "completion, answer, boxes", "reward misses a field"),
        ("return -len(completion)", "completion, answer", "reference not rewarded"),
    ],
)
def test_a_reward_that_cannot_teach_is_found(
    vlrl: Any, tmp_path: Path, body: str, signature: str, reason: str
) -> None:
    write_rows(tmp_path / "rows.jsonl", good_rows(tmp_path, 1))
    config = write_config(tmp_path, rewards=[write_reward(tmp_path, body, signature)])
    result = vlrl("data", "check", config, "--json")
    assert result.code == 1
    assert set(reasons(result.json)["r0"]) == {reason}
    assert vlrl("data", "check", config, "--no-rewards").code == 0


def test_the_built_in_rewards_like_the_reference(vlrl: Any, tmp_path: Path) -> None:
    rows = good_rows(tmp_path, 2)
    rows.append(make_row(2, None, "no answer", answer=None))
    write_rows(tmp_path / "rows.jsonl", rows)
    config = write_config(tmp_path, rewards=[{"name": "answer_exact"}, {"name": "think_answer_format"}])
    result = vlrl("data", "check", config, "--json")
    assert reasons(result.json) == {"r2": ["reward fails"]}
    assert "no 'answer' to compare with" in result.err


def test_tokens_are_counted_against_the_budget(vlrl: Any, tmp_path: Path, tiny_model: Path) -> None:
    rows = good_rows(tmp_path, 3)
    rows.append(make_row(3, write_image(tmp_path / "large.png", 50, (400, 500))))
    rows.append(make_row(4, None, "What is <|image_pad|>?"))
    write_rows(tmp_path / "rows.jsonl", rows)
    config = write_config(tmp_path, model={"path": str(tiny_model)})
    result = vlrl("data", "check", config, "data.max_prompt_tokens=64", "--json")
    assert reasons(result.json) == {"r3": ["too long"], "r4": ["bad prompt"]}
    (source,) = result.json["sources"]
    assert source["tokens"]["max"] > 64 == result.json["token_limit"]
    assert sum(one["num_rows"] for one in result.json["token_histogram"]) == 4
    assert "and 64 fit" in result.err
    assert "Prompts by length" in result.err


@pytest.mark.slow
def test_pairs_are_checked_as_dpo_uses_them(vlrl: Any, tmp_path: Path, tiny_model: Path) -> None:
    """A prompt may have several pairs; a pair of one answer, a repeated one, and no pair at all are found."""
    answers = [("3", "4"), ("3", "5"), ("3", "3"), ("3", "4")]
    rows = [
        {"id": f"r{i}", "prompt": "How many?", "chosen": chosen, "rejected": rejected}
        for i, (chosen, rejected) in enumerate(answers)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    config = write_config(tmp_path, model={"path": str(tiny_model)}, preferences={})
    result = vlrl("data", "check", config, "--json")
    assert reasons(result.json) == {"r2": ["no pair"], "r3": ["duplicate"]}
    assert "sample 'r2': 'chosen' and 'rejected' are the same" in result.err
    write_rows(tmp_path / "rows.jsonl", [make_row(0, None, target="3")])
    result = vlrl("data", "check", config, "--json")
    assert reasons(result.json) == {"r0": ["no pair"]}


def test_nothing_is_cached_unless_asked(vlrl: Any, tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.jsonl", good_rows(tmp_path, 3))
    config, cache = write_config(tmp_path), tmp_path / "cache"
    assert vlrl("data", "check", config).code == 0
    assert not any(cache.rglob("*"))
    assert vlrl("data", "check", config, "--warm-cache").code == 0
    assert any(cache.rglob("*"))


DATASET = """
import os, signal, time

class Rows:
    def __len__(self):
        return 70

    def __getitem__(self, index):
        {trouble}
        return {{"id": f"r{{index}}", "messages": [{{"role": "user", "content": f"Say {{index}}."}}]}}
"""


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_row_that_kills_its_process_is_that_rows_fault(vlrl: Any, tmp_path: Path, num_workers: int) -> None:
    as_a_decoder_does = "if index == 40: os.kill(os.getpid(), signal.SIGSEGV)"
    (tmp_path / "killer.py").write_text(DATASET.format(trouble=as_a_decoder_does))
    config = write_config(tmp_path, data={"train": {"name": "./killer.py:Rows"}})
    result = vlrl("data", "check", config, "--json", "--workers", num_workers)
    assert result.code == 1
    (row,) = result.json["bad"]
    assert (row["row"], [p["reason"] for p in row["problems"]]) == (40, ["kills the reader"])
    assert "killed by SIGSEGV" in result.err
    assert result.json["num_rows"] == 70


def test_the_number_of_processes_changes_nothing(vlrl: Any, tmp_path: Path) -> None:
    rows = good_rows(tmp_path, 80)
    rows[5] = make_row(5, "0_3.png")
    rows[70] = make_row(70, "gone.png")
    file = write_rows(tmp_path / "rows.jsonl", rows)
    results = [vlrl("data", "check", file, "--json", "--workers", n).json for n in (1, 3)]
    for result in results:
        del result["duration_s"]
    assert results[0] == results[1]
    assert reasons(results[0]) == {"r5": ["duplicate"], "r70": ["broken medium"]}


def test_videos_are_decoded_too(vlrl: Any, tmp_path: Path) -> None:
    good = videos.write_video(tmp_path / "good.mp4")
    (tmp_path / "cut.mp4").write_bytes(good.read_bytes()[:300])
    (tmp_path / "none.mp4").write_bytes(b"")
    rows = [make_row(i, None) for i in range(3)]
    for row, name in zip(rows, ("good.mp4", "cut.mp4", "none.mp4"), strict=True):
        row["messages"][0]["content"].insert(0, {"type": "video", "video": name})
    result = vlrl("data", "check", write_rows(tmp_path / "rows.jsonl", rows), "--json")
    assert reasons(result.json) == {"r1": ["broken medium"], "r2": ["broken medium"]}
    assert result.json["sources"][0]["num_videos"] == 1


def test_sounds_are_decoded_too(vlrl: Any, tmp_path: Path) -> None:
    write_sound(tmp_path / "good.wav", tone(0.5))
    (tmp_path / "cut.wav").write_bytes((tmp_path / "good.wav").read_bytes()[:20])
    rows = [make_row(i, None) for i in range(2)]
    for row, name in zip(rows, ("good.wav", "cut.wav"), strict=True):
        row["messages"][0]["content"].insert(0, {"type": "audio", "audio": name})
    result = vlrl("data", "check", write_rows(tmp_path / "rows.jsonl", rows), "--json")
    assert reasons(result.json) == {"r1": ["broken medium"]}
    assert result.json["sources"][0]["num_audios"] == 1
    assert "audios" in vlrl("data", "check", tmp_path / "rows.jsonl").out


def living(session: int) -> list[Path]:
    """A session's processes that are not dead."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, owner = stat.read_text().rpartition(")")[2].split()[:4]
            if int(owner) == session and state not in "ZX":
                found.append(stat.parent)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


def test_ctrl_c_stops_everything(tmp_path: Path) -> None:
    started = tmp_path / "started"
    slow = f"if index: open({str(started)!r}, 'a').close(), time.sleep(0.3)"
    (tmp_path / "slow.py").write_text(DATASET.format(trouble=slow))
    config = write_config(tmp_path, data={"train": {"name": f"{tmp_path / 'slow.py'}:Rows"}})
    command = [Path(sys.executable).parent / "vlrl", "data", "check", config, "--workers", "2"]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not started.exists():
        assert child.poll() is None
        time.sleep(0.05)
    os.killpg(child.pid, signal.SIGINT)  # as a terminal does
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Traceback" not in err
    while living(child.pid):  # Python's own helper process ends a moment after its parent
        time.sleep(0.05)


def test_what_a_row_says_cannot_paint_the_terminal(vlrl: Any, tmp_path: Path) -> None:
    row = make_row(0, "\x1b[31mgone[bold].png")
    result = vlrl("data", "check", write_rows(tmp_path / "rows.jsonl", [row]))
    assert result.code == 1
    assert "\x1b[31m" not in result.out
    assert "gone[bold].png" in result.out


def test_the_quickstart_is_clean_before_its_model_is_there(vlrl: Any) -> None:
    result = vlrl("data", "check", ROOT / "configs" / "quickstart.yaml", "--limit", 40)
    assert result.code == 0, result.err
    assert "clean: 80 rows" in result.out
    assert "does not exist yet" in result.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["rows.josnl"], "did you mean rows.jsonl"),
        (["rows.jsonl", "--clean", "good.txt"], "ends in .jsonl"),
        (["rows.jsonl", "shpe=llava"], "shape"),
        (["rows.jsonl", "--split", "eval"], "names no rows"),
        (["rows.jsonl", "--model", "models/none", "processor.min_pixles=1"], "min_pixels"),
        (["run.yaml", "rewards=[{name: answer_exat}]"], "answer_exact"),
    ],
)
def test_wrong_usage_is_2(vlrl: Any, tmp_path: Path, arguments: list[str], words: str) -> None:
    write_rows(tmp_path / "rows.jsonl", good_rows(tmp_path, 1))
    write_config(tmp_path)
    result = vlrl("data", "check", *arguments)
    assert result.code == 2, result.err
    assert words in result.err


def test_the_check_is_written_as_a_page(vlrl: Any, tmp_path: Path) -> None:
    rows = [{"messages": [{"role": "user", "content": "1+1"}], "answer": "2"}, {"messages": []}]
    (tmp_path / "rows.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    result = vlrl("data", "check", "rows.jsonl", "--html", "pages/check.html", "--json")
    assert result.code == 1, result.err
    page = (tmp_path / "pages" / "check.html").read_text(encoding="utf-8")
    assert "1 of 2 rows have a problem" in page
    assert result.json["bad"][0]["place"] in page
