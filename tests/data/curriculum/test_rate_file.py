"""Files of pass rates: atomic, resumable, and refused where they do not belong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_config

from vlrl.config import Config
from vlrl.data.curriculum.fingerprints import data_fingerprint, model_fingerprint
from vlrl.data.curriculum.open import Samplers, header_of, rate_path, rates_beside, without_samplers
from vlrl.data.curriculum.rate_file import RateFile, RateHeader, RateJournal, read_rates
from vlrl.data.curriculum.summary import kept_rates, rate_summary
from vlrl.data.open import open_dataset
from vlrl.data.run_data import Sources
from vlrl.errors import ConfigError, DataError, ResourceError
from vlrl.scoring.compose import ComposedReward

HEADER = RateHeader("d", "m", 5, "{}", 1.0, 4, "{}")


def journal(folder: Path, header: RateHeader = HEADER) -> RateJournal:
    return RateJournal(folder / "x.jsonl.rates", header)


def test_a_journal_goes_on_after_a_kill_even_in_the_middle_of_a_line(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.add([0, 1], [4, 1], [4, 4], unusable=[])
    part = tmp_path / ".x.jsonl.rates.part"
    whole = part.read_bytes()
    first.add([2], [0], [4], unusable=[3])
    for cut in range(len(whole), len(part.read_bytes())):
        part.write_bytes((whole + b'{"rows": [2], "passed": [0], "scored": [4], "unusable": [3]}\n')[:cut])
        again = journal(tmp_path)
        assert again.rates.missing.tolist() == [2, 3, 4]
        assert not (tmp_path / "x.jsonl.rates").exists()
    again.add([2, 4], [0, 2], [4, 3], unusable=[3])
    rates = again.finish()
    assert not part.exists()
    found = read_rates(tmp_path / "x.jsonl.rates")
    assert found.passed.tolist() == rates.passed.tolist() == [4, 1, 0, 0, 2]
    assert found.rates[[0, 1, 2, 4]].tolist() == [1.0, 0.25, 0.0, 2 / 3]
    assert np.isnan(found.rates[3])
    assert found.missing.size == 0


def test_rows_without_a_score_are_asked_again_and_no_others(tmp_path: Path) -> None:
    first = journal(tmp_path)
    first.add(range(5), [1, 0, 2, 3, 4], [4, 0, 4, 4, 4], unusable=[])
    first.finish()
    assert journal(tmp_path).rates.missing.tolist() == [1]


def test_a_journal_of_another_header_is_not_gone_on_with(tmp_path: Path) -> None:
    journal(tmp_path).add([0], [1], [4], unusable=[])
    other = replace(HEADER, model="other")
    assert other.key != HEADER.key
    assert journal(tmp_path, other).rates.missing.size == 5


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ResourceError, match=r"cannot be kept in .*file.*--out"):
        RateJournal(tmp_path / "file" / "x.rates", HEADER)


@pytest.mark.parametrize("text", ["", "{}", '{"header": {"data": 1}}', "[1"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.rates").write_text(text)
    with pytest.raises(DataError, match=r"x\.rates is not a file of pass rates.*vlrl data rate"):
        read_rates(tmp_path / "x.rates")


@pytest.fixture
def rows_file(tmp_path: Path) -> Path:
    lines = [json.dumps({"problem": f"question {i}", "answer": "1", "level": i % 2}) for i in range(5)]
    (tmp_path / "rows.jsonl").write_text("\n".join(lines))
    return tmp_path / "rows.jsonl"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    (tmp_path / "model" / "model.safetensors").write_bytes(bytes(300_000))
    return tmp_path / "model"


def config_of(rows: Path, model: Path, **sampler: Any) -> Config:
    sections: dict[str, Any] = {"train": {"name": str(rows), "sampler": sampler} if sampler else str(rows)}
    return make_config(model, data=sections, run={"dir": str(model.parent / "runs")})


def rated(rows: Path, model: Path, passed: tuple[int, ...] = (4, 3, 2, 1, 0)) -> Path:
    """The path of a whole file of rates."""
    config = config_of(rows, model)
    options = config.data.train[0]
    header = header_of(config, options, open_dataset(options, "data.train"), num_samples=4)
    made = RateJournal(path := rate_path(config, options, header), header)
    made.add(range(5), passed, [4] * 5, unusable=[])
    made.finish()
    return path


def samplers(config: Config) -> Samplers:
    return Samplers.open(config, Sources.open(config).train, ComposedReward(config.rewards, inline=True))


def test_rates_are_kept_beside_the_data_and_found_there(rows_file: Path, model: Path) -> None:
    path = rated(rows_file, model)
    assert path.parent == rows_file.parent
    assert path.name.startswith("rows.jsonl.")
    config = config_of(rows_file, model)
    rows = open_dataset(config.data.train[0], "data.train")
    assert [found for found, _ in rates_beside(config, config.data.train[0], rows)] == [path]
    (summary,) = kept_rates(config, config.data.train[0], "data.train")
    assert (summary["num_never"], summary["num_always"], sum(summary["between"])) == (1, 1, 3)
    assert summary["pass_rate_mean"] == 0.5
    rows_file.write_text(rows_file.read_text().replace("question 3", "another"))
    assert rates_beside(config, config.data.train[0], open_dataset(config.data.train[0], "data.train")) == []
    task = make_config(run={"dir": str(model.parent / "runs")})
    assert rate_path(task, task.data.train[0], HEADER).parent == model.parent / "runs" / "rates"


def test_static_and_adaptive_samplers_start_from_the_file(rows_file: Path, model: Path) -> None:
    path = str(rated(rows_file, model))
    band = {"name": "band", "options": {"low": 0.4, "high": 0.8}, "adaptive": False, "start_rates": path}
    opened = samplers(config_of(rows_file, model, **band))
    assert {opened.orders[0].index(p) for p in range(20)} == {1, 2}
    assert opened.rows is None
    adaptive = samplers(config_of(rows_file, model, name="hardness", start_rates=path, pool_by="level"))
    assert not adaptive.orders
    assert adaptive.rows is not None
    assert without_samplers(config_of(rows_file, model, **band)).data.train[0].sampler.name == "uniform"


def test_rates_of_something_else_are_refused(rows_file: Path, model: Path) -> None:
    sampler = {"name": "learnability", "start_rates": str(rated(rows_file, model))}
    config = config_of(rows_file, model, **sampler)
    assert samplers(config).rows is not None

    changed = config.model_copy(update={"data": config.data.model_copy(update={"pass_threshold": 0.5})})
    with pytest.raises(ConfigError, match=r"start_rates=.* made with pass_threshold 1\.0, but .* 0\.5"):
        samplers(changed)
    train = {"name": str(rows_file), "sampler": sampler}
    other = make_config(model, data={"train": train}, rewards="numeric")
    with pytest.raises(ConfigError, match=r"made with reward .*answer_exact.*rewards is .*numeric"):
        samplers(other)
    (model / "model.safetensors").write_bytes(bytes(299_999) + b"1")
    with pytest.raises(ConfigError, match=r"start_rates=.*made with model .*model\.path=.*`vlrl data rate"):
        samplers(config)
    (model / "model.safetensors").write_bytes(bytes(300_000))
    text = rows_file.read_text()
    rows_file.write_text(text.replace("question 3", "another"))
    with pytest.raises(ConfigError, match=r"start_rates=.*made with data .*data\.train\.name=.*rows\.jsonl"):
        samplers(config)
    rows_file.write_text(text + "\n" + text.splitlines()[0])
    with pytest.raises(ConfigError, match=r"made with num_rows 5, but data\.train\.name=.* has 6"):
        samplers(config)


def test_a_row_without_a_rate_a_missing_file_or_key_are_refused(rows_file: Path, model: Path) -> None:
    path = rated(rows_file, model)
    tree = json.loads(path.read_text())
    tree["scored"][2] = 0
    path.write_text(json.dumps(tree))
    sampler = {"name": "learnability", "start_rates": str(path)}
    with pytest.raises(ConfigError, match=r"1 of 5 rows of .*rows\.jsonl have no rate.*row 2;.*only these"):
        samplers(config_of(rows_file, model, **sampler))
    path.unlink()
    with pytest.raises(ConfigError, match="does not exist; `vlrl data rate CONFIG` writes it"):
        samplers(config_of(rows_file, model, **sampler))
    with pytest.raises(ConfigError, match=r"pool_by=depth: row 0 of data\.train\.name has no 'depth'.*level"):
        samplers(config_of(rows_file, model, name="learnability", pool_by="depth"))


def test_supervised_training_refuses_an_adaptive_sampler(rows_file: Path, model: Path) -> None:
    config = config_of(rows_file, model, name="learnability")
    with pytest.raises(ConfigError, match=r"sampler\.adaptive=true follows.*vlrl sft.*adaptive=false"):
        Samplers.open(config, Sources.open(config).train, None)


def test_fingerprints_tell_content_and_not_place(rows_file: Path, model: Path, tmp_path: Path) -> None:
    def of(path: Path, **options: Any) -> str:
        config = make_config(data={"train": {"name": str(path), **options}})
        return data_fingerprint(open_dataset(config.data.train[0], "data.train"))

    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "other.jsonl").write_text(rows_file.read_text())
    assert of(rows_file) == of(tmp_path / "moved" / "other.jsonl")
    assert len({of(rows_file), of(rows_file, limit=4), of(rows_file, system="Think.")}) == 3
    formed = [json.loads(line) | {"structured_outputs": {"regex": "a"}} for line in rows_file.open()]
    (tmp_path / "formed.jsonl").write_text("".join(json.dumps(row) + "\n" for row in formed))
    assert of(rows_file) != of(tmp_path / "formed.jsonl")
    assert model_fingerprint(str(model)) != model_fingerprint("owner/name")
    before = model_fingerprint(str(model))
    (model / "config.json").write_text('{"a": 1}')
    assert model_fingerprint(str(model)) != before


def test_the_summary_of_nothing_is_one_too() -> None:
    summary = rate_summary(RateFile.empty(HEADER))
    assert (summary["num_rated"], summary["num_missing"], summary["pass_rate_mean"]) == (0, 5, None)
