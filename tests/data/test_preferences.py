"""Rows of preferences as TRL and others write them, and which of them are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import make_sample

from vlrl.config.learning.preferences import PreferencesConfig
from vlrl.data.preferences import completions_of
from vlrl.errors import DataError
from vlrl.types import Sample

QUESTION = {"role": "user", "content": "What color is the sky?"}
BLUE, GREEN = ({"role": "assistant", "content": color} for color in ("It is blue.", "It is green."))


@pytest.mark.parametrize(
    "record",
    [
        {"prompt": "What color is the sky?", "chosen": "It is blue.", "rejected": "It is green."},
        {"prompt": [QUESTION], "chosen": [BLUE], "rejected": [GREEN]},
        {"chosen": [QUESTION, BLUE], "rejected": [QUESTION, GREEN]},
        {"prompt": "What color is the sky?", "chosen": [QUESTION, BLUE], "rejected": [QUESTION, GREEN]},
    ],
    ids=["text", "messages", "implicit prompt", "prompt beside whole conversations"],
)
def test_trls_layouts_of_pairs(read: Any, record: Any) -> None:
    (row,) = read({**record, "score_chosen": 8.0})
    assert [(m["role"], m["content"]) for m in row["messages"]] == [("user", QUESTION["content"])]
    assert (row["target"], row["rejected"], row["answer"]) == ("It is blue.", "It is green.", "It is blue.")
    assert row["metadata"] == {"score_chosen": 8.0}


def test_texts_without_a_prompt_share_their_first_words(read: Any) -> None:
    (row,) = read({"chosen": "The sky is blue.", "rejected": "The sky is black."})
    assert row["messages"][0]["content"] == "The sky is"
    assert (row["target"], row["rejected"]) == ("blue.", "black.")


def test_earlier_turns_belong_to_the_prompt(read: Any) -> None:
    start = [{"role": "system", "content": "Be brief."}, QUESTION, BLUE, {"role": "user", "content": "Sure?"}]
    yes, no = ({"role": "assistant", "content": text} for text in ("Yes.", "No."))
    (row,) = read({"chosen": [*start, yes], "rejected": [*start, no]})
    assert [m["role"] for m in row["messages"]] == ["system", "user", "assistant", "user"]
    assert (row["target"], row["rejected"]) == ("Yes.", "No.")


def test_images_are_in_the_prompt(read: Any, tmp_path: Path) -> None:
    asked = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}]
    (row,) = read({"images": ["a.png"], "prompt": asked, "chosen": [BLUE], "rejected": [GREEN]})
    image, text = row["messages"][0]["content"]
    assert Path(image["image"]).name == "a.png"
    assert text["text"] == "What is it?"
    (row,) = read({"image": "a.png", "prompt": "What is <image>?", "chosen": "A cat", "rejected": "A dog"})
    assert [part["type"] for part in row["messages"][0]["content"]] == ["text", "image", "text"]


@pytest.mark.parametrize("label", [True, False])
def test_completions_with_a_label(read: Any, label: bool) -> None:
    (row,) = read({"prompt": "Which color?", "completion": "blue", "label": label})
    assert (row["target"], row["label"]) == ("blue", label)
    assert row.get("answer") == ("blue" if label else None)
    assert row["metadata"] == {}


def test_a_label_that_is_no_bool_is_the_rows_own(read: Any) -> None:
    (row,) = read({"prompt": "Which color?", "completion": "blue", "label": "sky"})
    assert row["metadata"] == {"label": "sky"}
    (row,) = read({"prompt": "Which color?", "completion": "blue", "label": 0}, shape="preference")
    assert row["label"] is False
    with pytest.raises(DataError, match="'label' must be true or false, not 'sky'"):
        read({"prompt": "Which?", "completion": "blue", "label": "sky"}, shape="preference")


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"chosen": "blue", "rejected": "green"}, "must begin with it"),
        ({"prompt": "Which?", "chosen": "blue", "rejected": [GREEN]}, "must both be text, or both messages"),
        ({"prompt": "Which?", "chosen": [QUESTION, BLUE], "rejected": [QUESTION, GREEN]}, "do not hold"),
        ({"chosen": [QUESTION, BLUE, QUESTION, BLUE], "rejected": [QUESTION, GREEN]}, "last message alone"),
        ({"prompt": "Which?", "chosen": [QUESTION], "rejected": [BLUE]}, "'chosen' and 'rejected'"),
    ],
)
def test_what_is_no_pair_is_refused_with_its_place(read: Any, record: Any, problem: str) -> None:
    with pytest.raises(DataError, match=problem) as raised:
        read(record)
    assert "rows.jsonl" in str(raised.value)


class Letters:
    """A processor whose tokens are characters."""

    def encode_target(self, text: str, opened: str = "", *, closed: bool = False) -> Any:
        return np.array([*map(ord, text), 0, *([1] if closed else [])])


def texts(sample: Sample, loss: str = "dpo") -> list[tuple[str, bool]]:
    found = completions_of(sample, Letters(), PreferencesConfig(loss=loss))  # type: ignore[arg-type]
    assert all(c.token_ids.tolist() == [*map(ord, c.text), 0] for c in found)
    return [(completion.text, completion.is_good) for completion in found]


def test_what_a_loss_is_given_of_a_row() -> None:
    pair = make_sample(target="yes", rejected="no")
    assert texts(pair) == texts(pair, "kto") == [("yes", True), ("no", False)]
    assert texts(make_sample(target="no", label=False), "kto") == [("no", False)]


@pytest.mark.parametrize(
    ("fields", "loss", "problem"),
    [
        ({"target": "yes", "rejected": "yes"}, "dpo", "'chosen' and 'rejected' are the same"),
        ({"target": "yes", "rejected": "yes"}, "kto", "'chosen' and 'rejected' are the same"),
        ({"target": "yes"}, "dpo", "no 'rejected' completion, and preferences.loss=dpo compares two"),
        ({"target": "yes", "label": True}, "ipo", "no 'rejected' completion"),
        ({"target": "yes"}, "kto", "neither a 'label'"),
        ({"target": "yes", "rejected": ""}, "dpo", "an empty completion"),
    ],
)
def test_a_row_that_a_loss_cannot_use_is_named(fields: dict[str, Any], loss: str, problem: str) -> None:
    with pytest.raises(DataError, match=f"sample 'row 7'.*{problem}"):
        texts(make_sample(id="row 7", **fields), loss)


def scored(sample: Sample, **options: Any) -> list[tuple[list[int], float]]:
    options = {"loss": "bradley_terry", **options}
    found = completions_of(sample, Letters(), PreferencesConfig(**options))  # type: ignore[arg-type]
    return [(completion.token_ids.tolist(), completion.advantage) for completion in found]


def test_a_reward_model_is_given_completions_as_a_conversation_ends_with_them() -> None:
    """What the template writes comes behind the token that ends the turn, then one place for the score."""
    pair = make_sample(target="a", rejected="b")
    assert scored(pair) == [([97, 0, 1, 1], 1.0), ([98, 0, 1, 1], -1.0)]


def test_a_column_holds_the_margin() -> None:
    pair = make_sample(target="a", rejected="b", metadata={"by": 0.5})
    assert [advantage for _, advantage in scored(pair, margin="by")] == [1.5, -1.5]
    assert [advantage for _, advantage in scored(pair)] == [1.0, -1.0]


@pytest.mark.parametrize("value", [None, -1, "1", True, float("nan"), float("inf")])
def test_another_value_than_a_margin_names_the_row(value: Any) -> None:
    pair = make_sample(id="row 7", target="a", rejected="b", metadata={"by": value})
    with pytest.raises(DataError, match=r"sample 'row 7' has .* in column 'by' \(preferences.margin\)"):
        scored(pair, margin="by")
