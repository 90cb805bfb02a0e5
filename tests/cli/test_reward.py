"""`vlrl reward`: list, show, new, test and score from the command line, with their exit codes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from vlrl.registry import BUILT_IN

GOOD = '''
from vlrl.rewards import reward
from vlrl.parsing.extract import extract_answer


@reward(range=(0.0, 1.0))
def good(completion, answer, *, share=1.0):
    """Share of a point for the right answer."""
    return share * (extract_answer(completion) == answer)


@reward(range=(0.0, 1.0))
def bad(completion, answer):
    """A point for any answer with the right one in it."""
    return float(answer in completion)
'''
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(GOOD)
    rows = [
        {
            "id": f"row-{number}",
            "messages": [{"role": "user", "content": f"What is it? {EVIL}"}],
            "answer": answer,
        }
        for number, answer in enumerate(("cat", "dog", "bird", EVIL))
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


def test_list_has_every_built_in_with_its_purpose(vlrl: Any) -> None:
    rows = {row["name"]: row for row in vlrl("reward", "list", "--json").json["rewards"]}
    assert rows.keys() >= BUILT_IN["rewards"].keys()
    for name in BUILT_IN["rewards"]:
        assert rows[name]["purpose"].endswith((".", ":")), name
        assert rows[name]["place"].partition(":")[0].endswith(".py"), name
    assert rows["box_iou"]["range"] == [0.0, 1.0]
    assert rows["box_iou"]["wants"] == ["canvases"]
    assert rows["soft_overlong"]["options"]["max_tokens"] == "required"
    result = vlrl("reward", "list")
    assert result.code == 0
    assert "vlm_r1_ovd" in result.out and "max_tokens=…" in result.out


def test_show_says_what_it_takes(vlrl: Any, mine: Path) -> None:
    result = vlrl("reward", "show", "numeric")
    assert result.code == 0
    for words in ("numeric(", "relative = 0.0", "[0, 1]", "ChartQA", "numeric.py:"):
        assert words in result.out, words
    assert "  - name: numeric" in result.out
    shown = vlrl("reward", "show", "./mine.py:good", "--json").json
    assert shown["options"] == {"share": "1.0"}
    assert shown["purpose"] == "Share of a point for the right answer."
    assert vlrl("reward", "show", "numerik").code == 2
    assert "did you mean 'numeric'" in vlrl("reward", "show", "numerik").err


def test_every_built_ins_snippet_is_yaml_that_names_it(vlrl: Any) -> None:
    import yaml

    for row in vlrl("reward", "list", "--json").json["rewards"]:
        (entry,) = yaml.safe_load(row["config"])["rewards"]
        assert entry["name"] == row["name"]
        assert entry.get("options", {}).keys() <= row["options"].keys()


@pytest.mark.parametrize("flags", [[], ["--batched"], ["--async"], ["--batched", "--async"]])
def test_new_writes_a_reward_whose_test_passes(vlrl: Any, tmp_path: Path, flags: list[str]) -> None:
    result = vlrl("reward", "new", "is_same", "--dir", "sub", *flags, "--json")
    assert result.code == 0
    files = [tmp_path / "sub" / name for name in ("is_same.py", "test_is_same.py")]
    assert all(file.is_file() for file in files)
    test = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "sub/test_is_same.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert test.returncode == 0, test.stdout
    assert "12 passed" in test.stdout
    assert len(result.json["next"]) == 3
    assert vlrl(*result.json["next"][1].split()[1:]).code == 0
    lint = ["ruff", "check", "--isolated", "--line-length", "110", "--select", "E,F,W,UP,B,SIM"]
    done = subprocess.run([sys.executable, "-m", *lint, *map(str, files)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_new_overwrites_nothing(vlrl: Any, tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text("keep")
    result = vlrl("reward", "new", "mine")
    assert result.code == 2 and "test_mine.py is there already" in result.err
    assert (tmp_path / "test_mine.py").read_text() == "keep" and not (tmp_path / "mine.py").exists()
    for name in ("class", "two words", "../up", "_x"):
        assert vlrl("reward", "new", name).code == 2


def test_a_sound_reward_is_0_and_an_unsound_one_1(vlrl: Any, mine: Path) -> None:
    good = vlrl("reward", "test", "./mine.py:good", "--data", "rows.jsonl", "--json")
    assert (good.code, good.json["ok"]) == (0, True)
    assert good.json["num_samples"] == 4 and good.json["form"] == "<think></think><answer>{}</answer>"
    bad = vlrl("reward", "test", "./mine.py:bad", "--data", "rows.jsonl", "--limit", "2")
    assert bad.code == 1
    assert "unsound: no answer" in bad.out and "all answers at once" in bad.out and "2 samples" in bad.out


def test_options_and_margin(vlrl: Any, mine: Path) -> None:
    low = vlrl("reward", "test", "./mine.py:good", "--option", "share=0.5", "--json").json
    assert low["options"] == {"share": 0.5}
    assert "goes to 1" in next(check["found"] for check in low["checks"] if check["name"] == "right answers")
    assert low["data"] == "built-in samples: text"
    assert vlrl("reward", "test", "token_f1", "--margin", "0").code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["./mine.py:god"], "did you mean 'good'"),
        (["./mine.py:good", "--option", "shear=1"], "takes no option 'shear'"),
        (["./mine.py:good", "--option", "share"], "must be key=value"),
        (["./mine.py:good", "--data", "gone.jsonl"], "gone.jsonl does not exist"),
        (["./mine.py:good", "shape=llava"], "give --data as well"),
        (["./mine.py:good", "--adapter", "tlr"], "adapter"),
        (["soft_overlong"], "needs 'buffer'"),
        (["cosine_length", "--option", "max_tokens=0", "--option", "accuracy=answer_exact"], "max_tokens=0"),
    ],
)
def test_wrong_usage_is_2(vlrl: Any, mine: Path, arguments: list[str], words: str) -> None:
    result = vlrl("reward", "test", *arguments)
    assert result.code == 2, result.out
    assert words in result.err


class Tags(HTMLParser):
    """Names of the elements, and all the text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[str] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_whole_and_holds_no_markup_of_others(vlrl: Any, mine: Path) -> None:
    vlrl("reward", "test", "./mine.py:bad", "--data", "rows.jsonl", "--html", "out/page.html")
    text = (mine / "out" / "page.html").read_text()
    page = Tags(text)
    assert "script" not in page.names and not {name for name in page.attributes if name.startswith("on")}
    assert "default-src 'none'" in text and "http" not in text.replace("http-equiv", "")
    assert EVIL in page.text and "Unsound: no answer" in page.text
    assert page.names.count("circle") > 80
    assert "prefers-color-scheme: dark" in text
    assert 'class="case hole"' in text or "class='case hole'" in text


def test_score_compares_with_what_was_logged(vlrl: Any, mine: Path) -> None:
    records = [
        {"sample_id": "q", "group_index": i, "answer": "cat", "completion": text, "reward": 0.0, "parts": {}}
        for i, text in enumerate(("<think></think><answer>cat</answer>", "cat"))
    ]
    (mine / "after.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    result = vlrl("reward", "score", "./mine.py:good", "after.jsonl", "--option", "share=0.5", "--json")
    assert result.code == 0
    assert (result.json["old_mean"], result.json["new_mean"], result.json["num_changed"]) == (0.0, 0.25, 1)
    shown = vlrl("reward", "score", "./mine.py:good", "after.jsonl")
    assert "0 → 1  q, answer cat" in shown.out and "1 of 2 completions change" in shown.out
    failing = vlrl("reward", "score", "numeric", "after.jsonl")
    assert failing.code == 1 and "2 completions cannot be scored" in failing.out
    assert vlrl("reward", "score", "numeric", "gone.jsonl").code == 2


@pytest.mark.slow
def test_an_installed_package_is_listed_tested_and_tests_itself(tmp_path: Path) -> None:
    """examples/reward_plugin, installed as it is."""
    plugin, site = Path(__file__).parents[2] / "examples" / "reward_plugin", tmp_path / "site"
    copy, elsewhere = tmp_path / "plugin", tmp_path / "elsewhere"
    shutil.copytree(plugin, copy)
    shutil.copytree(copy / "tests", elsewhere / "tests")
    shutil.copy(copy / "samples.jsonl", elsewhere)
    offline = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", str(copy), *offline], check=True, cwd=tmp_path)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ["PYTHONPATH"]])}

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments], cwd=elsewhere, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip().splitlines()[-1]

    def vlrl_json(*arguments: str) -> dict[str, Any]:
        return dict(json.loads(run("-c", "from vlrl.cli.main import main; main()", *arguments, "--json")))

    assert "14 passed" in run("-m", "pytest", "-q", "-p", "no:cacheprovider")
    rows = {row["name"]: row for row in vlrl_json("reward", "list")["rewards"]}
    assert rows["clock_time"]["built_in"] is False
    assert rows["clock_time"]["target"] == "vlrl_clock_reward.clock:clock_time"
    assert str(site) in rows["clock_time"]["place"]
    assert vlrl_json("reward", "test", "clock_time", "--data", "samples.jsonl")["ok"]


def test_the_readmes_reward_is_sound_and_sees_answers_in_tags(vlrl: Any, root: Path, tmp_path: Path) -> None:
    readme = (root / "README.md").read_text()
    row = readme.partition("    # data.jsonl")[2].splitlines()[1]
    code = textwrap.dedent(readme.partition("    # my_reward.py")[2].partition("\n")[2].split("    vlrl ")[0])
    row = json.loads(row) | {"messages": [{"role": "user", "content": "How many cats?"}]}
    rows = [row | {"id": str(i), "answer": str(i)} for i in range(2, 8)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "my_reward.py").write_text(code)
    result = vlrl("reward", "test", "./my_reward.py:score", "--data", "data.jsonl", "--json")
    assert result.code == 0, result.err
    statuses = {check["name"]: check["status"] for check in result.json["checks"]}
    assert statuses["answer tags"] == "ok" and "fail" not in statuses.values()

    (tmp_path / "my_reward.py").write_text(
        "def score(completion, answer):\n    return float(completion.strip() == answer)\n"
    )
    result = vlrl("reward", "test", "./my_reward.py:score", "--data", "data.jsonl", "--json")
    tags = next(check for check in result.json["checks"] if check["name"] == "answer tags")
    assert tags["status"] == "warn" and "in <answer> tags scores nothing" in tags["found"]
