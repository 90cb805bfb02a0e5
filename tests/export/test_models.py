"""Lists of exported models, and the chain of one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from vlrl.cli.app import run
from vlrl.errors import ConfigError
from vlrl.export.folder import export_run
from vlrl.export.models import ancestry_lines, find_models, show_model
from vlrl.export.provenance import EXPORT_FILE, ancestors


def test_a_folder_of_models_with_figures_and_parents(
    trained_run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    first = trained_run.parent / "first"
    export_run(first, tmp_path / "a")
    export_run(trained_run, tmp_path / "deep" / "b", checkpoint="40")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / EXPORT_FILE).write_text("{")
    parent, child = find_models(tmp_path)
    base = str(trained_run.parent / "base")
    assert (parent.name, parent.step, parent.accuracy, parent.parent) == ("first-60", 60, None, base)
    assert (child.name, child.step, child.accuracy) == ("second-40", 40, 1.0)
    assert (child.base, child.parent, child.parent_export) == (base, str(first / "model"), "first-60")
    assert run(["models", "list", str(tmp_path), "--json"]) == 0
    assert [model["name"] for model in json.loads(capfd.readouterr().out)["models"]] == [
        "first-60",
        "second-40",
    ]


def test_the_chain_goes_through_runs_and_exports_to_the_base(trained_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "model"
    export_run(trained_run, out)
    lines = "\n".join(ancestry_lines(show_model(out)))
    places = [lines.index(f"run {name}") for name in ("second", "first")]
    assert places == sorted(places) and lines.rstrip().endswith("base, fingerprint 0123456789abcdef")

    third = tmp_path / "third"  # began with the export, whose runs may lie on another machine
    shutil.copytree(trained_run, third, symlinks=True)
    entry = json.loads((third / "lineage.json").read_text())[0]
    entry["model"] = {"path": str(out)}
    (third / "lineage.json").write_text(json.dumps([entry]))
    assert [each["name"] for each in ancestors(third)] == ["third", "second", "first"]


def test_a_folder_that_is_no_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="give a folder that `vlrl export` wrote"):
        show_model(tmp_path)
