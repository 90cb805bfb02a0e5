"""`vlrl algorithm`: list, show and check from the command line, with their exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vlrl.config.presets import PRESETS
from vlrl.registry import BUILT_IN

CONFIGS = Path(__file__).parents[2] / "configs"


def test_list_has_every_preset_and_function_with_its_purpose(vlrl: Any) -> None:
    found = vlrl("algorithm", "list", "--json").json
    assert [row["name"] for row in found["presets"]] == list(PRESETS)
    for kind in ("advantages", "losses", "corrections", "regularizers", "selections"):
        rows = {row["name"]: row for row in found[kind]}
        assert rows.keys() >= BUILT_IN[kind].keys()
        assert all(rows[name]["purpose"] for name in BUILT_IN[kind])
    assert {row["name"]: row["options"] for row in found["losses"]}["gspo"] == {
        "low": "0.0003",
        "high": "0.0004",
    }


def test_list_and_show_are_for_people_too(vlrl: Any) -> None:
    shown = vlrl("algorithm", "list").out
    assert "pass_at_k" in shown and "algorithm.loss=NAME" in shown
    shown = vlrl("algorithm", "show", "gspo").out
    assert "preset gspo" in shown and "algorithm.aggregation=sequence" in shown and "2507.18071" in shown
    assert "algorithm.loss.options.high = 0.0004" in shown


def test_show_has_the_preset_and_its_functions(vlrl: Any) -> None:
    found = vlrl("algorithm", "show", "rloo", "--json").json
    assert found["preset"]["keys"]["loss"] == "policy_gradient"
    assert [f["kind"] for f in found["functions"]] == ["advantages"]
    assert vlrl("algorithm", "show", "ppo", "--json").json["functions"][0]["reads"] == [
        "algorithm.clip_low",
        "algorithm.clip_high",
        "algorithm.dual_clip",
    ]


def test_an_unknown_name_is_wrong_usage(vlrl: Any) -> None:
    failed = vlrl("algorithm", "show", "gsp")
    assert failed.code == 2
    assert "no algorithm is named 'gsp'; did you mean 'gspo'?" in failed.err
    assert "did you mean 'gspo'?" in vlrl("algorithm", "check", "gsp").err


def test_check_says_what_fails_and_exits_with_1(vlrl: Any, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("def mine(t, a, A):\n    return -A * (t - a).exp(), A > 9\n")
    failed = vlrl("algorithm", "check", f"{file}:mine", "--json")
    assert failed.code == 1
    assert not failed.json["ok"] and "✗ unsound: finite" in failed.err
    assert vlrl("algorithm", "check", "gspo", "--option", "low=0.2", "--json").json["ok"]


def test_config_show_prints_what_a_preset_expanded_to(vlrl: Any) -> None:
    shown = vlrl("config", "show", CONFIGS / "quickstart.yaml", "algorithm=gspo", "--json").json["algorithm"]
    assert (
        shown["preset"] == "gspo" and shown["aggregation"] == "sequence" and shown["loss"]["name"] == "gspo"
    )
