from dataclasses import replace

import datasets
import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from kept_rollouts import FakeProcessor, make_episode, make_group

from vlrl.batch import TokenValues
from vlrl.tracking.rollouts.read import read_rollouts, record_of
from vlrl.tracking.rollouts.records import rollout_records
from vlrl.tracking.rollouts.table import SCHEMA, RolloutPlace, rollout_table

PLACES = [RolloutPlace(3, 12, 0), RolloutPlace(3, 13, 1)]


def make_table(values: TokenValues | None = None) -> pa.Table:
    return rollout_table([make_group(), make_episode()], PLACES, FakeProcessor(), values)


def test_a_row_is_the_record_that_json_has() -> None:
    expected = rollout_records([make_group(), make_episode()], FakeProcessor(), phase="train", step=3)
    for row, record in zip(make_table().to_pylist(), expected, strict=True):
        found = record_of(row)
        found["ledgers"] = [{key: each[key] for key in record["ledgers"][0]} for each in found["ledgers"]]
        assert {key: found[key] for key in record} == record


def test_what_the_trainer_computed_stands_at_its_tokens() -> None:
    # Of the question's second answer the last token; of the episode's second ledger the fourth token.
    origins = np.array([[0, 1, 0, 4], [1, 0, 1, 3], [7, 0, 0, 0]])
    values = TokenValues(origins, np.array([-1, -2, -9], np.float32), np.array([0.5, 0.25, 9], np.float32))
    first, second, episode = make_table(values).to_pylist()
    none = [None] * 5
    assert first["ledgers"][0]["trainer_logprobs"] == none
    assert second["ledgers"][0]["trainer_logprobs"] == [*none[:4], -1.0]
    assert second["ledgers"][0]["entropies"] == [*none[:4], 0.5]
    assert episode["ledgers"][1]["trainer_logprobs"] == [None, None, None, -2.0]
    assert episode["ledgers"][0]["entropies"] == [None] * 6


def test_tokens_say_what_generated_them_and_what_they_are_trained_towards() -> None:
    _, _, episode = make_table().to_pylist()
    ledger = episode["ledgers"][0]
    assert ledger["loss_mask"] == [False, False, True, False, True, True]
    assert ledger["weight_versions"] == [None, None, 1, None, 1, 1]
    assert ledger["advantages"] == [None, None, None, None, 4.0, 5.0]  # the first action is not trained
    assert ledger["token_texts"] == [f"<{number}>" for number in range(6)]


def test_the_place_and_the_refusal_of_a_group_are_columns() -> None:
    group = make_group()
    group.refusal = "zero_variance"
    row = rollout_table([group], [RolloutPlace(5, None, 2, is_replayed=True)], FakeProcessor()).to_pylist()[1]
    assert (row["step"], row["position"], row["group"], row["group_index"]) == (5, None, 2, 1)
    assert (row["refusal"], row["replayed"], row["num_generated_tokens"]) == ("zero_variance", True, 2)
    assert make_table()["refusal"].null_count == 3


def test_hostile_text_and_odd_values_are_kept() -> None:
    group = make_group()
    group.trajectories[0].sample = replace(group.trajectories[0].sample, id="row\ud800")
    group.trajectories[0].completion = "\ud800 <script>alert(1)</script> \u202e"
    group.trajectories[0].info = {"success": float("nan")}
    row = rollout_table([group], PLACES[:1], FakeProcessor()).to_pylist()[0]
    assert row["completion"] == "\\ud800 <script>alert(1)</script> \u202e"
    assert row["info"] == [{"name": "success", "value": None}]


def test_no_group_is_an_empty_table_of_the_same_schema() -> None:
    table = rollout_table([], [], FakeProcessor())
    assert table.num_rows == 0 and table.schema.equals(SCHEMA)


def test_duckdb_asks_the_files_of_all_steps_at_once(tmp_path) -> None:
    for step in (3, 4):
        pq.write_table(make_table(), tmp_path / f"{step:06d}.parquet")
    files = f"'{tmp_path}/*.parquet'"
    counts = duckdb.sql(f"select count(*), avg(reward) from {files} where outcome = 'ok'").fetchall()
    rows = make_table().to_pylist()
    ok = [row["reward"] for row in rows if row["outcome"] == "ok"]
    assert counts == [(2 * len(ok), pytest.approx(sum(ok) / len(ok)))]
    turns = duckdb.sql(f"select turn.text from (select unnest(turns) as turn from {files})").fetchall()
    assert sorted(text for (text,) in turns) == sorted(2 * [t["text"] for row in rows for t in row["turns"]])


def test_pandas_and_datasets_open_a_file(tmp_path) -> None:
    file = tmp_path / "000003.parquet"
    pq.write_table(make_table(), file)
    frame = pd.read_parquet(file)
    assert frame.reward.tolist()[:2] == [1.5, 1.5] and frame.ledgers[2][1]["token_ids"].tolist() == [
        0,
        1,
        2,
        3,
    ]
    rows = datasets.load_dataset("parquet", data_files=str(file), cache_dir=str(tmp_path / "cache"))["train"]
    assert rows[2]["turns"][1]["text"] == "??" and len(rows) == 3
    assert [record["completion"] for record in read_rollouts(file)] == frame.completion.tolist()
