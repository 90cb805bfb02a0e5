"""A run's sources: named, mixed, kept within the context, held out once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import make_config, open_tiny
from data_formats import png
from published import write_table

from vlrl.config import Config
from vlrl.data.run_data import RunData, Sources
from vlrl.errors import ConfigError, DataError
from vlrl.types import Row, Sample


class CountingProcessor:
    """The tiny model's, counting the samples it makes."""

    def __init__(self, inner: Any) -> None:
        self._inner, self.made = inner, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def sample(self, row: Row) -> Sample:
        self.made.append(row["id"])
        return self._inner.sample(row)


def asked(sample: Sample) -> str:
    """The question, as the processor keeps it: a list of parts."""
    return str(sample.messages[0]["content"][-1]["text"])


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def file(name: str, *texts: str, **fields: Any) -> str:
        lines = [json.dumps({"problem": text, "answer": "1", **fields}) for text in texts]
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(lines))
        return str(tmp_path / name)

    return file


@pytest.fixture
def open_data(tiny_model: Path) -> Iterator[Any]:
    opened: list[RunData] = []

    def data(train: Any, heldout: Any = (), *, supervised: bool = False, **sections: Any) -> Any:
        options = {**sections.pop("data", {}), "train": train, "eval": heldout}
        config: Config = make_config(tiny_model, data=options, **sections)
        processor = CountingProcessor(open_tiny(tiny_model))
        opened.append(RunData(config, Sources.open(config), processor, supervised=supervised))
        return opened[-1], processor

    yield data
    for each in opened:
        each.close()


def test_samples_carry_their_sources_names(open_data: Any, write: Any) -> None:
    own = [{"name": "think_answer_format"}]
    train = [
        {"name": write("a.jsonl", "1", "2"), "weight": 2.0},
        {"name": write("b/a.jsonl", "3"), "rewards": own},
    ]
    data, _ = open_data(train, [{"name": write("a.jsonl", "1", "2")}])
    samples = [sample for step in range(8) for sample in data.stream.batch(step)]
    texts = {name: {asked(s) for s in samples if s.source == name} for name in ("a.jsonl", "a.jsonl#2")}
    assert texts == {"a.jsonl": {"1", "2"}, "a.jsonl#2": {"3"}}
    assert {sample.source for sample in data.heldout(None)} == {"heldout/a.jsonl"}
    alone, _ = open_data({"name": write("a.jsonl", "1", "2")})
    assert {sample.source for sample in alone.stream.batch(0)} == {""}


def test_each_sources_rewards_are_known_by_its_name(write: Any) -> None:
    name, own = write("a.jsonl", "1"), [{"name": "think_answer_format"}]
    config = make_config(
        data={"train": [{"name": name}, {"name": name, "rewards": own}], "eval": {"name": name}}
    )
    rewards = Sources.open(config).rewards
    assert {source: [r.name for r in configs] for source, configs in rewards.items()} == {
        "a.jsonl": [],
        "a.jsonl#2": ["think_answer_format"],
        "heldout/a.jsonl": [],
    }


def test_a_benchmark_brings_its_scorer_where_nobody_names_another(tmp_path: Path) -> None:
    record = {"type": "human_test", "question": "How high?", "answer": "14", "image": {"bytes": png(0)}}
    write_table(tmp_path / "test-0.parquet", record)
    source = {"name": "chartqa", "options": {"path": str(tmp_path)}}
    own = {**source, "rewards": [{"name": "numeric"}]}

    def names(**sections: Any) -> dict[str, list[str]]:
        rewards = Sources.open(make_config(**sections)).rewards
        return {name: [each.name for each in found] for name, found in rewards.items()}

    data = {"train": source, "eval": [source, own]}
    heldout = {"heldout/chartqa": ["relaxed_accuracy"], "heldout/chartqa#2": ["numeric"]}
    assert names(data=data) == {"": [], **heldout}  # the run trains on answer_exact
    assert names(data=data, rewards=[]) == {"": ["relaxed_accuracy"], **heldout}


def test_an_alias_takes_the_place_of_a_sources_name(write: Any) -> None:
    name = write("val.jsonl", "1")
    heldout = [{"name": name, "alias": "refcoco"}, {"name": name}, {"name": name}]
    config = make_config(data={"train": name, "eval": heldout})
    assert [source.name for source in Sources.open(config).heldout] == [
        "heldout/refcoco",
        "heldout/val.jsonl",
        "heldout/val.jsonl#2",
    ]


def test_a_wrong_source_is_named_by_its_key(write: Any) -> None:
    for train, key in (
        ({"name": "gone"}, "no dataset is named 'gone'"),
        (
            [{"name": write("a.jsonl", "1")}, {"name": write("e.jsonl")}],
            r"data\.train\.1: dataset '.*' is empty",
        ),
        ({"name": write("e.jsonl")}, r"data\.train: dataset '.*' is empty"),
    ):
        with pytest.raises((ConfigError, DataError), match=key):
            Sources.open(make_config(data={"train": train}))


def test_held_out_samples_are_made_once_all_sources_in_turn(open_data: Any, write: Any) -> None:
    heldout = [{"name": write("a.jsonl", *"12345"), "limit": 3}, {"name": write("b.jsonl", *"67")}]
    data, processor = open_data({"name": write("t.jsonl", "9")}, heldout, data={"prefetch_steps": 0})
    data.stream.batch(0)
    before = len(processor.made)
    first = data.heldout(1)
    assert len(processor.made) == before + 2
    everything = data.heldout(None)
    assert [asked(s) for s in everything] == list("12367")
    assert [asked(s) for s in data.heldout(2)] == list("1267")
    assert [id(s) for s in first] == [id(everything[0]), id(everything[3])]
    assert len(processor.made) == before + 5
    nothing, _ = open_data({"name": write("t.jsonl", "9")})
    assert nothing.heldout(None) == []


def test_held_out_rows_are_read_side_by_side(open_data: Any, write: Any, tmp_path: Path) -> None:
    """Those of an environment begin an episode each."""
    (tmp_path / "slow.py").write_text(
        "import threading\n"
        "both = threading.Barrier(2)\n"
        "class Slow:\n"
        "    def __len__(self): return 4\n"
        "    def __getitem__(self, index):\n"
        "        if index in (1, 2): both.wait(10)\n"
        "        asked = {'role': 'user', 'content': str(index)}\n"
        "        return {'id': str(index), 'messages': [asked], 'answer': None}\n"
    )
    data, _ = open_data({"name": write("t.jsonl", "9")}, {"name": f"{tmp_path}/slow.py:Slow"})
    assert [sample.id for sample in data.heldout(None)] == list("0123")


LONG = "1+" * 300


def test_rows_that_are_too_long_are_left_out(open_data: Any, write: Any) -> None:
    rows = {"name": write("a.jsonl", "1", LONG, "2", LONG)}
    data, processor = open_data(rows, rows, data={"max_prompt_tokens": 100}, rollout={"prompts_per_step": 8})
    texts = {asked(s) for s in data.stream.batch(0)}
    assert texts == {"1", "2"}
    assert data.stream.metrics["data/num_dropped_overlong"] >= 4
    assert [asked(s) for s in data.heldout(2)] == ["1", "2"]
    assert (len(data.heldout(None)), data.num_heldout_dropped) == (2, 2)
    assert not any(name.endswith((":2", ":4")) for name in processor.made)  # told before anything is decoded


def test_a_row_that_is_too_long_can_be_an_error(open_data: Any, write: Any) -> None:
    data, _ = open_data({"name": write("a.jsonl", LONG)}, data={"overlong": "error"})
    with pytest.raises(DataError, match=r"sample 'a\.jsonl:1' needs \d+ prompt tokens, 500 fit"):
        data.stream.batch(0)


def test_rows_that_are_too_long_can_be_kept_where_the_engine_has_room(open_data: Any, write: Any) -> None:
    middling = "How many are there? " * 8
    limits = {"overlong": "keep", "max_prompt_tokens": 40}
    data, _ = open_data(
        {"name": write("a.jsonl", "1", middling)}, data=limits, rollout={"prompts_per_step": 8}
    )
    lengths = [len(s.prompt.token_ids) for s in data.stream.batch(0)]
    assert data.stream.metrics["data/num_kept_overlong"] == sum(n > 40 for n in lengths) == 4
    assert data.stream.metrics["data/num_dropped_overlong"] == 0
    beyond, _ = open_data({"name": write("b.jsonl", LONG)}, data=limits)
    with pytest.raises(DataError, match=r"'b\.jsonl:1' needs \d+ prompt tokens, 500 fit"):
        beyond.stream.batch(0)


def test_without_an_option_prompts_leave_room_for_the_completion(open_data: Any, write: Any) -> None:
    """generator.max_model_len 512; rollout.max_tokens 12, or in supervised training the target's length."""
    row = {"name": write("a.jsonl", "1" * 440, target="2" * 40)}
    data, processor = open_data(row)
    (sample, *_) = data.stream.batch(0)
    length, target = len(sample.prompt.token_ids), len(processor.encode_target("2" * 40))
    for spare, supervised, fits in (
        (12, False, True),
        (11, False, False),
        (target, True, True),
        (target - 1, True, False),
    ):
        sections = {"generator": {"max_model_len": length + spare}, "data": {"overlong": "error"}}
        data, _ = open_data(row, supervised=supervised, **sections, sft={"batch_size": 2})
        if fits:
            assert data.stream.batch(0)
        else:
            with pytest.raises(DataError, match=f"needs {length} prompt tokens, {length - 1} fit"):
                data.stream.batch(0)


def test_a_limit_that_leaves_no_room_is_refused(open_data: Any, write: Any) -> None:
    row = {"name": write("a.jsonl", "1")}
    with pytest.raises(
        ConfigError, match=r"max_prompt_tokens=501 and rollout\.max_tokens=12 .*max_model_len=512"
    ):
        open_data(row, data={"max_prompt_tokens": 501})
    open_data(row, data={"max_prompt_tokens": 501}, supervised=True)


def test_broken_held_out_rows_are_an_error_or_left_out_and_reported(
    write: Any, open_data: Any, tmp_path: Path
) -> None:
    train = {"name": write("t.jsonl", "9")}
    heldout = {"name": write("h.jsonl", *"123")}
    lines = Path(heldout["name"]).read_text().splitlines()
    row = {"problem": "<image>What?", "images": ["gone.png"], "answer": "1"}
    Path(heldout["name"]).write_text("\n".join([lines[0], "{torn", json.dumps(row), lines[2]]) + "\n")
    with pytest.raises(DataError):
        open_data(train, heldout)[0].heldout(None)
    data, _ = open_data(train, heldout, data={"on_broken": "drop"})
    assert len(data.heldout(None)) == 2
    assert data.num_heldout_dropped == 2
