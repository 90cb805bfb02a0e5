"""Which tokens a grammar lets follow, place by place, with a tiny model's tokenizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config
from torch import Tensor
from transformers import AutoTokenizer

from vlrl.errors import InternalError
from vlrl.ledger import IntArray
from vlrl.model.structured import allowed as structured_allowed
from vlrl.model.structured.allowed import AllowedTokens
from vlrl.model.structured.forms import form_of
from vlrl.processors.auto import open_processor

AllowedFn = Callable[[Sequence[IntArray], IntArray], Tensor]


def opened(model: Path) -> tuple[AllowedTokens, Any, int]:
    config = make_config(model)
    processor = open_processor(config)
    allowed = AllowedTokens(config, processor.stop_token_ids)
    return allowed, AutoTokenizer.from_pretrained(model), processor.stop_token_ids[0]


def followed(model: Path, structured: dict[str, Any]) -> tuple[AllowedFn, Any, int]:
    """All actions of one form."""
    allowed, tokenizer, stop = opened(model)
    form = form_of(structured, "test")
    return lambda actions, places: allowed(actions, [form] * len(actions), places), tokenizer, stop


def ids(tokenizer: Any, text: str, *more: int) -> IntArray:
    return np.array([*tokenizer.encode(text, add_special_tokens=False), *more], np.int64)


def texts(tokenizer: Any, row: Tensor) -> set[str]:
    """What the tokens of one row say."""
    bits = (row[:, None] >> torch.arange(32)) & 1
    return {tokenizer.decode([number]) for number in bits.flatten().nonzero().flatten().tolist()}


def every_place(number: int, action: IntArray) -> IntArray:
    return np.array([[number, place] for place in range(len(action))], np.int64)


def test_what_may_follow_is_what_the_expression_says(tiny_model: Path) -> None:
    allowed, tokenizer, stop = followed(tiny_model, {"regex": "[0-9]{2}x"})
    action = ids(tokenizer, "71x", stop)
    rows = allowed([action], every_place(0, action))
    digits = set("0123456789")
    found = [texts(tokenizer, row) for row in rows]
    assert len(action) == 4, "each digit is a token of its own"
    assert found[0] == found[1] == digits
    assert found[2] == {"x"}
    assert found[3] == {"<|im_end|>", "<|endoftext|>"}, "those that end a completion, and no others"


def test_text_is_free_but_for_what_stands_in_tags(tiny_model: Path) -> None:
    """Thoughts, then a call of a tool: the usual agent's turn."""
    tag = {"begin": "<call>", "content": {"type": "regex", "pattern": "[0-9]x"}, "end": "</call>"}
    form = {"type": "triggered_tags", "triggers": ["<call>"], "tags": [tag], "at_least_one": False}
    allowed, tokenizer, stop = followed(tiny_model, {"structural_tag": {"format": form}})
    action = ids(tokenizer, "add <call>7x</call>", stop)
    said = [tokenizer.decode([token]) for token in action]
    rows = [texts(tokenizer, row) for row in allowed([action], every_place(0, action))]
    inside = said.index("7")
    assert rows[inside] == set("0123456789") and rows[inside + 1] == {"x"}
    assert len(rows[0]) > 100 and {"7", "<|vision_start|>"} < rows[0], "a special token is the text it spells"
    assert "<|im_end|>" in rows[-1]


def test_places_come_in_any_order_and_actions_are_apart(tiny_model: Path) -> None:
    allowed, tokenizer, stop = followed(tiny_model, {"choice": ["7", "8 9"]})
    first, second = ids(tokenizer, "7", stop), ids(tokenizer, "8 9", stop)
    whole = torch.cat([allowed([a], every_place(0, a)) for a in (first, second)])
    places = np.concatenate([every_place(0, first), every_place(1, second)])
    order = np.random.default_rng(0).permutation(len(places))
    assert torch.equal(allowed([first, second], places[order]), whole[order])
    twice = np.array([[1, 0], [1, 0]], np.int64)  # branches share a trained token
    assert torch.equal(allowed([first, second], twice), whole[[len(first)] * 2])


def test_a_completion_that_was_cut_is_followed_to_its_end(tiny_model: Path) -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    allowed, tokenizer, _ = followed(tiny_model, {"json_schema": schema})
    action = ids(tokenizer, "[12, 34")
    assert "]" in texts(tokenizer, allowed([action], every_place(0, action))[-1])


def test_a_token_that_could_not_be_sampled_is_an_error(tiny_model: Path) -> None:
    allowed, tokenizer, _ = followed(tiny_model, {"grammar": 'root ::= "no" | "yes"'})
    action = ids(tokenizer, "nay")
    with pytest.raises(InternalError, match=r"structured_outputs: token \d+, at place \d"):
        allowed([action], every_place(0, action))


def test_each_action_is_of_its_own_form(tiny_model: Path) -> None:
    """The same as where all actions are of one form, and of none every token is possible."""
    allowed, tokenizer, stop = opened(tiny_model)
    digits, word = form_of({"regex": "[0-9]{2}"}, "a"), form_of({"choice": ["left", "right"]}, "b")
    said = {digits: ids(tokenizer, "71", stop), word: ids(tokenizer, "left", stop), "": ids(tokenizer, "?!")}
    forms = [digits, word, "", digits]
    actions = [said[form] for form in forms]
    places = np.concatenate([every_place(number, action) for number, action in enumerate(actions)])
    order = np.random.default_rng(0).permutation(len(places))
    found = allowed(actions, forms, places[order])
    alone = [allowed([said[form]], [form], every_place(0, said[form])) for form in forms]
    assert torch.equal(found, torch.cat(alone)[order])
    assert (alone[2] == -1).all() and not torch.equal(alone[0][0], alone[1][0])


def test_a_grammar_is_compiled_once(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many rows have the same form."""
    allowed, tokenizer, stop = opened(tiny_model)
    counted: list[str] = []
    monkeypatch.setattr(structured_allowed, "_compile", _counting(structured_allowed._compile, counted))
    form, action = form_of({"regex": "[0-9]+"}, "a"), ids(tokenizer, "71", stop)
    places = np.concatenate([every_place(number, action) for number in range(50)])
    allowed([action] * 50, [form] * 50, places)
    assert counted == [form]


def _counting(compile_: Callable[..., Any], counted: list[str]) -> Callable[..., Any]:
    def counting(form: str, compiler: Any) -> Any:
        counted.append(form)
        return compile_(form, compiler)

    return counting


def test_nothing_asked_is_nothing_followed(tiny_model: Path) -> None:
    allowed, _, _ = followed(tiny_model, {"regex": "a+"})
    assert allowed([], np.zeros((0, 2), np.int64)).shape[0] == 0
