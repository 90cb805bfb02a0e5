"""Templates that begin the assistant's message themselves: every family, and Qwen3-VL-Thinking's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import family_config, make_generation, observe

from vlrl.config.options import RewardConfig
from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.codecs.codec import View
from vlrl.envs.gui.codecs.open import CODECS, open_codec
from vlrl.processors.auto import open_processor
from vlrl.processors.prompts.template import without_opened
from vlrl.registry import BUILT_IN
from vlrl.rewards.agents.gui import click_in_box
from vlrl.rollout.session import Session
from vlrl.scoring.compose import ComposedReward
from vlrl.sft import supervised_group
from vlrl.types import Sample

FAMILIES = sorted(BUILT_IN["processors"])
OPENING = "{% if add_generation_prompt %}<think>\n{% endif %}"
CLOSED = "{% if add_generation_prompt %}<think>\n\n</think>\n\n{% endif %}"

# The published template of Qwen3-VL-Thinking without its tools: thoughts of earlier turns are left out.
THINKING = (
    "{% set ns = namespace(last=0) %}"
    "{% for message in messages %}{% if message.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}"
    "{% endfor %}{% for message in messages %}"
    "{% set text %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endset %}"
    "{{ '<|im_start|>' + message.role + '\n' }}"
    "{% if message.role == 'assistant' %}{% set thought, said = '', text %}"
    "{% if '</think>' in text %}"
    "{% set thought = text.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n') %}"
    "{% set said = text.split('</think>')[-1].lstrip('\n') %}{% endif %}"
    "{% if loop.index0 > ns.last %}{{ '<think>\n' + thought.strip('\n') + '\n</think>\n\n' }}{% endif %}"
    "{{ said.lstrip('\n') }}{% else %}{{ text }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)


def opened_processor(folder: Path, change: Callable[[str], str]) -> Any:
    processor = open_processor(family_config(folder))
    processor._hf.chat_template = change(processor._hf.chat_template)
    return processor


def ask(processor: Any, row_id: str = "r") -> Sample:
    message = {"role": "user", "content": [{"type": "text", "text": "Add 3 and <b>5</b>, <think>."}]}
    sample: Sample = processor.sample({"id": row_id, "messages": [message], "answer": "8", "target": "8"})
    return sample


def generated(processor: Any, text: str) -> Any:
    return make_generation(processor.encode_target(text).tolist())


@pytest.fixture(scope="module", params=FAMILIES)
def folder(request: pytest.FixtureRequest, tiny_family: Callable[[str], Path]) -> Path:
    return tiny_family(request.param)


def test_a_right_answer_is_paid_where_the_template_opens_the_thought(folder: Path) -> None:
    processor = opened_processor(folder, lambda template: template + OPENING)
    session = Session(ask(processor), 0)
    generation = generated(processor, "3 + 5</think><answer>8</answer>")
    text = processor.act(session, generation)
    assert text.split() == ["<think>", "3", "+", "5</think><answer>8</answer>"]
    trajectory = session.trajectory(text, "ok", 0.0)
    names = ("think_answer_format", "tag_format", "numeric", "answer_exact")
    with ComposedReward([RewardConfig(name=name) for name in names], inline=True) as reward:
        score = asyncio.run(reward.score(trajectory))
    assert score.parts == dict.fromkeys(names, 1.0)
    assert trajectory.turns[0].text == text
    assert trajectory.action_ids == generation.token_ids.tolist()  # the trainer sees what was sampled


def test_published_templates_open_nothing(folder: Path) -> None:
    processor = open_processor(family_config(folder))
    assert ask(processor).prompt.opened == ""


def test_an_empty_thought_that_the_template_writes_belongs_to_the_message(folder: Path) -> None:
    processor = opened_processor(folder, lambda template: template + CLOSED)
    session = Session(ask(processor), 0)
    text = processor.act(session, generated(processor, "<answer>8</answer>"))
    assert text.split() == ["<think>", "</think>", "<answer>8</answer>"]


def test_later_turns_are_whole_messages_too(folder: Path) -> None:
    """The template keeps what was said, so the message with its tag is appended and nothing forks."""
    processor = opened_processor(folder, lambda template: template + OPENING)
    session = Session(ask(processor), 0)
    processor.show(session, session.conversation)
    for number in ("12", "3"):
        text = processor.act(session, generated(processor, f"{number}</think>{number}"))
        assert text.startswith("<think>") and text.endswith(f"{number}</think>{number}")
        observe(processor, session, "go on")
    trajectory = session.trajectory("", "ok", 0.0)
    assert all(turn.text.startswith("<think>") for turn in trajectory.turns)
    spelled = "".join(processor.token_texts(trajectory.ledgers[-1].token_ids))
    assert "<think><think>" not in "".join(spelled.split())


def test_a_target_does_not_open_the_thought_again(folder: Path) -> None:
    processor = opened_processor(folder, lambda template: template + OPENING)
    message = {"role": "user", "content": [{"type": "text", "text": "3 + 5?"}]}
    target = "<think>3 + 5</think><answer>8</answer>"
    sample = processor.sample({"id": "r", "messages": [message], "target": target})
    for train_on in ("last", "all"):
        (trajectory,) = supervised_group(sample, processor, train_on).trajectories
        said = "".join(processor.token_texts(trajectory.ledgers[0].token_ids))
        assert said.count("<think>") == 1
        assert said.count("</think><answer>8</answer>") == 1


def test_qwen3_vl_thinking(tiny_family: Callable[[str], Path]) -> None:
    """The thought is left out of later prompts as published, so a later turn forks; both are whole."""
    processor = opened_processor(tiny_family("qwen3_vl"), lambda template: THINKING)
    session = Session(ask(processor), 0)
    assert session.opened == "<think>\n"
    processor.show(session, session.conversation)
    first = processor.act(session, generated(processor, "12\n</think>\n\n3"))
    observe(processor, session, "go on")
    second = processor.act(session, generated(processor, "3\n</think>\n\n12"))
    assert (first, second) == ("<think>\n12\n</think>\n\n3", "<think>\n3\n</think>\n\n12")
    ledgers = session.trajectory(second, "ok", 0.0).ledgers
    assert len(ledgers) == 2
    spelled = "".join(processor.token_texts(ledgers[1].token_ids))
    assert "<|im_start|>assistant\n3<|im_end|>" in spelled  # the first turn without its thought
    assert spelled.endswith("<|im_start|>assistant\n<think>\n3\n</think>\n\n12<|im_end|>")


def test_tags_around_every_message_are_a_header(tiny_family: Callable[[str], Path]) -> None:
    def tagged(template: str) -> str:
        del template
        return (
            "{% for message in messages %}<{{ message.role }}>\n"
            "{% for part in message.content %}{{ part.text }}{% endfor %}</{{ message.role }}>\n{% endfor %}"
            "{% if add_generation_prompt %}<assistant>\n{% endif %}"
        )

    assert ask(opened_processor(tiny_family("qwen2_5_vl"), tagged)).prompt.opened == ""
    both = opened_processor(tiny_family("qwen2_5_vl"), lambda template: tagged(template) + OPENING)
    assert ask(both).prompt.opened == "<think>\n"


@pytest.mark.parametrize("name", CODECS)
def test_codecs_read_whole_messages(tiny_family: Callable[[str], Path], name: str) -> None:
    """What follows the thought is the action; a thought that was cut holds none, whatever it quotes."""
    processor = opened_processor(tiny_family("qwen3_vl"), lambda template: THINKING)
    canvas = Canvas((480, 640), (476, 644), "per_1000")
    action = open_codec(name).format(Click((320, 240)), View(canvas, (0, 0)))
    for said, score in ((f"It is there.\n</think>\n\n{action}", 1.0), (f"Say {action}", 0.0), (action, 0.0)):
        text = processor.act(Session(ask(processor), 0), generated(processor, "3")).replace("3", said)
        box = {"action": "click", "bbox": [300, 220, 340, 260]}
        assert click_in_box(text, box, canvases=[canvas], codec=name) == score


@pytest.mark.parametrize(
    ("text", "opened", "rest"),
    [
        ("<think>a", "<think>\n", "a"),
        ("<think>\na", "<think>\n", "a"),
        ("<think>\na", "<think>", "\na"),
        ("a", "<think>\n", "a"),
        ("<thinker>a", "<think>\n", "<thinker>a"),
        ("<think>a", "", "<think>a"),
    ],
)
def test_what_was_opened_is_not_written_twice(text: str, opened: str, rest: str) -> None:
    assert without_opened(text, opened) == rest
