"""YAML's silent readings are none of ours."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from vlrl.config import load_config
from vlrl.config.strict_yaml import load_yaml
from vlrl.data.readers.listing import open_listing
from vlrl.errors import ConfigError, DataError

TEXT = """\
model: {path: m}
data: {train: {name: digit_sum}}
num_steps: 3
optim:
  lr: 1e-3
num_steps: 400
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: 1\nb: 2\na: 3\n", "'a' occurs twice, on line 1 and on line 3"),
        ("a:\n  b: 1\n  c: 2\n  b: 1\n", "'b' occurs twice, on line 2 and on line 4"),
        ("- {a: 1, b: 2, a: 3}", "'a' occurs twice, on line 1 and on line 1"),
        ("x: &x {a: 1}\ny: {<<: *x, b: 2, b: 3}", "'b' occurs twice"),
    ],
)
def test_a_key_that_stands_twice_is_refused_with_both_lines(text: str, words: str) -> None:
    with pytest.raises(yaml.YAMLError, match=words):
        load_yaml(text)


def test_what_is_merged_may_be_overridden() -> None:
    assert load_yaml("x: &x {a: 1, b: 2}\ny: {<<: *x, a: 3}") == {
        "x": {"a": 1, "b": 2},
        "y": {"a": 3, "b": 2},
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 1e-3),
        ("-2E5", -2e5),
        ("1.5e3", 1.5e3),
        ("[1e-6, 3]", [1e-6, 3]),
        ("'1e-3'", "1e-3"),
        ("1e", "1e"),
        ("7", 7),
    ],
)
def test_a_number_with_an_exponent_is_a_number(text: str, value: object) -> None:
    assert load_yaml(text) == value


def test_a_config_with_a_key_twice_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(TEXT)
    with pytest.raises(ConfigError, match=r"run\.yaml.*'num_steps' occurs twice, on line 3 and on line 6"):
        load_config(path)


def test_nor_is_an_override_or_a_list_of_data(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(TEXT.replace("num_steps: 400\n", ""))
    assert load_config(path, ["optim.betas=[0.9, 99e-2]"]).optim.betas == (0.9, 0.99)
    with pytest.raises(ConfigError, match="'lr' occurs twice"):
        load_config(path, ["optim={lr: 1, lr: 2}"])
    listing = tmp_path / "list.yaml"
    listing.write_text("datasets:\n- json_path: a.json\ndatasets: []\n")
    with pytest.raises(DataError, match="'datasets' occurs twice, on line 1 and on line 3"):
        open_listing(str(listing))
