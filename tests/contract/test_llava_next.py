"""LLaVA-NeXT's language models have a template each, and a tokenizer that puts blanks of its own."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import family_config, make_generation, observe, random_image
from tokenizers import AddedToken

from vlrl.processors.auto import open_processor
from vlrl.rollout.session import Session

PARTS = (
    "{% for part in message.content if part.type == 'image' %}{{ '<image>\n' }}{% endfor %}"
    "{% for part in message.content if part.type == 'text' %}"
)
TEMPLATES = {
    # llava-v1.6-mistral-7b-hf as it first was: its end of a turn is no token.
    "mistral": (
        "{% for message in messages %}{% if message.role == 'user' %}{{ '[INST] ' }}"
        + PARTS
        + "{{ part.text }}{% endfor %}{{ ' [/INST]' }}"
        "{% else %}{{ ' ' + message.content[0].text + '<\\s> ' }}{% endif %}{% endfor %}"
    ),
    # llava-v1.6-vicuna-*-hf: a blank ends a turn.
    "vicuna": (
        "{% for message in messages %}{{ message.role | upper + ': ' }}"
        + PARTS
        + "{{ part.text + ' ' }}{% endfor %}{% endfor %}{% if add_generation_prompt %}ASSISTANT:{% endif %}"
    ),
    "chatml": (
        "{% for message in messages %}{{ '<|im_start|>' + message.role + '\n' }}"
        + PARTS
        + "{{ part.text }}{% endfor %}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    ),
}


@dataclass(frozen=True)
class Kind:
    """How turns end in a template, and whether what was generated stays in the conversation as it is."""

    end_of_turn: str
    appends: bool


KINDS = {
    "own": Kind("</s>", True),
    "mistral": Kind("</s>", False),
    "vicuna": Kind("</s>", False),
    "chatml": Kind("<|im_end|>", True),
}


@pytest.fixture(params=KINDS)
def opened(
    request: pytest.FixtureRequest, tiny_family: Callable[[str], Path], tmp_path: Path
) -> tuple[Kind, Any, Any]:
    """The processor of a model with a template, and transformers' own."""
    from transformers import AutoProcessor

    folder = tmp_path / "model"
    shutil.copytree(tiny_family("llava_next"), folder)
    theirs = AutoProcessor.from_pretrained(folder)
    theirs.chat_template = TEMPLATES.get(request.param, theirs.chat_template)
    theirs.tokenizer.add_tokens([AddedToken(token, special=True) for token in ("<|im_start|>", "<|im_end|>")])
    theirs.save_pretrained(folder)
    return KINDS[request.param], open_processor(family_config(folder)), AutoProcessor.from_pretrained(folder)


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_prompts_and_targets_are_tokens_of_the_whole_conversation(opened: tuple[Kind, Any, Any]) -> None:
    """The beginning that the tokenizer adds, the end that the template has, no blank too many or too few."""
    kind, ours, theirs = opened
    assert ours.end_of_turn == kind.end_of_turn
    shown = random_image(70, 150)
    asked = {"role": "user", "content": [{"type": "image", "image": shown}, text("Which?")]}
    sample = ours.sample({"id": "r", "messages": [asked]})
    target = ours.encode_target("twelve or 3").tolist()
    assert ours.token_texts(np.array(target[-1:])) == [kind.end_of_turn]
    whole = theirs.apply_chat_template(
        [*sample.messages, {"role": "assistant", "content": [text("twelve or 3")]}], tokenize=False
    )
    expected = theirs(text=[whole], images=[shown])["input_ids"][0]
    found = [*sample.prompt.token_ids.tolist(), *target[:-1]]
    assert found == expected[: len(found)]
    assert (
        found[0] == theirs.tokenizer.bos_token_id and ours.decode(np.array(target)).strip() == "twelve or 3"
    )


def test_a_second_turn_is_appended_where_the_template_keeps_the_first(opened: tuple[Kind, Any, Any]) -> None:
    kind, ours, theirs = opened
    session = Session(ours.sample({"id": "r", "messages": [{"role": "user", "content": "Add 12 and 3."}]}), 0)
    ours.act(session, make_generation(ours.encode_target("twelve")))
    observe(ours, session, "After three, why?")
    talk = [("user", "Add 12 and 3."), ("assistant", "twelve"), ("user", "After three, why?")]
    messages = [{"role": role, "content": [text(said)]} for role, said in talk]
    whole = theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    assert session.token_ids == theirs(text=[whole])["input_ids"][0]
    ours.act(session, make_generation(ours.encode_target("done")))
    assert len(session.trajectory("done", "ok", 0.0).ledgers) == (1 if kind.appends else 2)
