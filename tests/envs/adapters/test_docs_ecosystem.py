"""What docs/environments.md shows of TRL, OpenEnv and verifiers runs as it stands there."""

from __future__ import annotations

import re

import pytest
import yaml
from ecosystem import ROOT, python

from vlrl.config.data import DataConfig
from vlrl.data import open_dataset

PAGE = (ROOT / "docs" / "environments.md").read_text(encoding="utf-8")


def shown(title: str, language: str) -> str:
    """The one block of a language in a section, with the interpreter of this checkout."""
    section = PAGE.partition(f"\n### {title}\n")[2].partition("\n### ")[0].partition("\n## ")[0]
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    return str(block).replace(".venv-verifiers/bin/python", python())


def run(code: str) -> None:
    exec(compile(code, "docs/environments.md", "exec"), {"__name__": "example"})


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


def test_trl(capsys: pytest.CaptureFixture[str]) -> None:
    run(shown("TRL", "python"))
    assert capsys.readouterr().out == "['guess', 'look']\n"


@pytest.mark.slow
def test_openenv(lights: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(shown("OpenEnv", "python").replace("http://127.0.0.1:8000", lights))
    assert "Which light is switched." in capsys.readouterr().out


@pytest.mark.slow
def test_verifiers(capsys: pytest.CaptureFixture[str]) -> None:
    run(shown("verifiers", "python"))
    printed = capsys.readouterr().out
    assert printed.startswith("32 You count with care. ") and "reward/right" in printed
    data = DataConfig.model_validate(yaml.safe_load(shown("verifiers", "yaml"))["data"])
    dataset = open_dataset(data.train[0], "data.train")
    row = dataset[5]
    assert len(dataset) == 32 and row["env"]["task"] == {"index": 1}
    assert [message["role"] for message in row["messages"]] == ["system", "user"]
    assert row["messages"][1]["content"][0]["image"].size == (84, 84)
