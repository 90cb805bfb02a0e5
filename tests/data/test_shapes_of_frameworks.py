"""Rows of verl, ms-swift and LLaMA-Factory as they publish them; of an unknown table the nearest layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vlrl.config.data import DatasetConfig
from vlrl.data import open_dataset
from vlrl.errors import DataError
from vlrl.types import Row


def texts(row: Row) -> list[str]:
    """Every message as role: content, media by name."""
    found = []
    for message in row["messages"]:
        content = message["content"]
        parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
        words = [p["text"] if p["type"] == "text" else f"<{Path(p[p['type']]).name}>" for p in parts]
        found.append(f"{message['role']}: {''.join(words)}")
    return found


def test_verls_parquet(tmp_path: Path) -> None:
    """Its geo3k script writes images in bytes and the truth in reward_model."""
    record = {
        "data_source": "hiyouga/geometry3k",
        "prompt": [{"role": "user", "content": "<image>Find x."}],
        "images": [{"bytes": b"\x89PNG", "path": None}],
        "ability": "math",
        "reward_model": {"style": "rule", "ground_truth": "3"},
        "extra_info": {"split": "train", "index": 0, "answer": "3", "question": "<image>Find x."},
    }
    pq.write_table(pa.Table.from_pylist([record, record]), tmp_path / "train.parquet")
    rows = list(open_dataset(DatasetConfig(name=str(tmp_path / "train.parquet")), "data.train"))
    assert len(rows) == 2 and len({row["id"] for row in rows}) == 2
    image, text = rows[0]["messages"][0]["content"]
    assert image["type"] == "image" and text == {"type": "text", "text": "Find x."}
    assert rows[0]["answer"] == "3" and "target" not in rows[0]
    assert rows[0]["metadata"]["data_source"] == "hiyouga/geometry3k"  # what verl's rewards are given
    assert rows[0]["metadata"]["extra_info"]["index"] == 0


def test_ms_swift(read: Any) -> None:
    """Its own messages, and query and response, which its converters also take."""
    messages = [{"role": "user", "content": "<image>What is it?"}, {"role": "assistant", "content": "A cat."}]
    pair, asked = read(
        {"messages": messages, "images": ["1.jpg"], "rejected_response": "A dog."},
        {"messages": messages[:1], "images": ["1.jpg"], "solution": "cat"},
    )
    assert texts(pair) == ["user: <1.jpg>What is it?"]
    assert (pair["target"], pair["rejected"]) == ("A cat.", "A dog.")
    assert asked["metadata"] == {"solution": "cat"}  # for the reward, by name
    record = {
        "system": "Be brief.",
        "history": [["Hello?", "Yes."]],
        "query": "<image>What is it?",
        "response": "A cat.",
        "rejected_response": "A dog.",
        "images": ["1.jpg"],
    }
    (row,) = read(record)
    assert texts(row) == [
        "system: Be brief.",
        "user: Hello?",
        "assistant: Yes.",
        "user: <1.jpg>What is it?",
    ]
    assert (row["target"], row["rejected"]) == ("A cat.", "A dog.")
    (labelled,) = read({"messages": messages, "images": ["1.jpg"], "label": False}, shape="swift")
    assert (labelled["target"], labelled["label"]) == ("A cat.", False)


def test_llama_factory(read: Any) -> None:
    """Its alpaca and sharegpt formats: supervised, preference and KTO."""
    (row,) = read(
        {"instruction": "<image>Describe it.", "input": "In a word.", "output": "Cat", "images": ["1.jpg"]}
    )
    assert texts(row) == ["user: <1.jpg>Describe it.\nIn a word."] and row["target"] == "Cat"
    (row,) = read({"instruction": "Which?", "input": "", "chosen": "a", "rejected": "b"})
    assert texts(row) == ["user: Which?"] and (row["target"], row["rejected"]) == ("a", "b")
    turns = [{"from": "human", "value": "<image>What is it?"}]
    ranked = {
        "conversations": turns,
        "chosen": {"from": "gpt", "value": "A cat."},
        "rejected": {"from": "gpt", "value": "A dog."},
        "images": ["1.jpg"],
    }
    (row,) = read(ranked)
    assert texts(row) == ["user: <1.jpg>What is it?"]
    assert (row["target"], row["rejected"]) == ("A cat.", "A dog.")
    (row,) = read({"conversations": [*turns, ranked["chosen"]], "images": ["1.jpg"], "kto_tag": True})
    assert (row["target"], row["label"]) == ("A cat.", True)


def test_columns_beside_a_layout_stay_for_the_rewards(read: Any) -> None:
    messages = [{"role": "user", "content": "?"}]
    (row,) = read({"messages": messages, "instruction": "i", "output": "o", "label": True})
    assert texts(row) == ["user: ?"] and row["metadata"] == {"instruction": "i", "output": "o", "label": True}
    (row,) = read({"prompt": "?", "instruction": "i", "output": "o"})
    assert texts(row) == ["user: ?"] and row["metadata"] == {"instruction": "i", "output": "o"}
    (row,) = read({"query": "Is it red?", "label": False})  # a question's answer, and no completion
    assert row["metadata"] == {"label": False} and "label" not in row and "target" not in row


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"question": "?", "answer": 1, "photo": "1.jpg"},
         "nearest is easy_r1, which lacks 'problem': say columns: {problem: question, image: photo}"),
        ({"question": "?", "gt": 1}, "'problem' and 'answer': say columns: {problem: question, answer: gt}"),
        ({"dialogue": []}, "nearest is vlrl, which lacks 'messages': say columns: {messages: dialogue}"),
        ({"image": "1.jpg", "answer": 1}, "nearest is easy_r1, which lacks 'problem'; `columns` says"),
        ({"query": "?", "response": "!", "objects": {"ref": ["x"]}}, "'objects' with <ref-object>"),
        ({"query": 3, "response": "!"}, "what 'user' says must be text, not int"),
        ({"query": "?", "history": ["a"], "response": "!"}, "'history' must be a list of .question, answer."),
        ({"prompt": "?", "reward_model": "rule"}, "'reward_model' must be an object with 'ground_truth'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(read: Any, record: Any, words: str) -> None:
    with pytest.raises(DataError) as refused:
        read(record)
    assert words.replace(".question, answer.", "[question, answer]") in str(refused.value)
