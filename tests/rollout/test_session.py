"""Law 1: the trainer gets what the sampler generated. The ledger only grows; nothing is re-encoded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import make_generation, make_sample, observe, open_tiny, random_image, row, text_prompt
from hypothesis import given
from hypothesis import strategies as st

from vlrl.errors import DataError
from vlrl.ledger import ExpertArray
from vlrl.rollout.session import Session
from vlrl.types import Generation, Media, VersionSpan

# Few distinct ids, so that generated tokens often equal the prompt's, and 0 (padding), 1 (stop) and 2 (a
# image's placeholder) are generated too: no value may mean anything.
TOKENS = st.lists(st.integers(0, 4), min_size=1, max_size=6)
EPISODES = st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=5)


def snapshot(session: Session) -> tuple[list[int], list[int], int]:
    return list(session.token_ids), list(session.engine_ids), session.next_position


@given(EPISODES)
def test_the_ledger_only_grows_and_the_mask_is_the_turns(episode: list[tuple[list[int], list[int]]]) -> None:
    session = Session(make_sample(episode[0][0]), group_index=0)
    expected_ids, expected_mask, expected_logprobs = list(episode[0][0]), [False] * len(episode[0][0]), []
    expected_logprobs += [0.0] * len(episode[0][0])
    for turn, (observation, action) in enumerate(episode):
        if turn:
            before = snapshot(session)
            session.append_observation(text_prompt(observation, session.next_position), ())
            assert session.token_ids[: len(before[0])] == before[0]
            expected_ids += observation
            expected_mask += [False] * len(observation)
            expected_logprobs += [0.0] * len(observation)
        before = snapshot(session)
        logprobs = [-0.5 * (t + 1) for t in range(len(action))]
        session.append_action(make_generation(action, logprobs, version=turn))
        assert session.token_ids[: len(before[0])] == before[0]
        assert session.engine_ids[: len(before[1])] == before[1]
        assert session.next_position == before[2] + len(action)
        expected_ids += action
        expected_mask += [True] * len(action)
        expected_logprobs += logprobs
    trajectory = session.trajectory("", "ok", 0.0)
    assert trajectory.ledgers[0].token_ids.tolist() == expected_ids == session.token_ids
    assert trajectory.ledgers[0].loss_mask.tolist() == expected_mask
    assert trajectory.ledgers[0].sampler_logprobs.tolist() == expected_logprobs
    assert (trajectory.ledgers[0].position_ids == np.arange(len(expected_ids))).all()
    for span, turn in zip(trajectory.ledgers[0].version_spans, trajectory.turns, strict=True):
        assert (span.start, span.end) == turn.action


def test_each_token_keeps_the_choice_of_experts_under_which_it_was_first_seen() -> None:
    """Later turns add theirs; a ledger of which one turn recorded nothing has none."""

    def rows(count: int, turn: int) -> ExpertArray:
        return np.full((count, 2, 1), turn, np.uint8)

    session = Session(make_sample([10, 11]), group_index=0)
    session.append_action(replace(make_generation([20, 21]), routed_experts=rows(3, 1)))
    twin = session.branch(1)
    for number, each in enumerate((session, twin)):
        each.append_observation(text_prompt([12], each.next_position), ())
        last = replace(make_generation([22]), routed_experts=None if number else rows(5, 2))
        each.append_action(last)
    [ledger] = session.trajectory("", "ok", 0.0).ledgers
    assert ledger.routed_experts is not None
    assert ledger.routed_experts[:, 0, 0].tolist() == [1, 1, 1, 2, 2]
    [ledger] = twin.trajectory("", "ok", 0.0).ledgers
    assert ledger.routed_experts is None


def test_the_worked_example_of_trajectory() -> None:
    session = Session(make_sample([10, 11]), group_index=3)
    session.append_action(make_generation([20, 21], [-0.1, -0.2], version=4))
    session.append_observation(text_prompt([30], session.next_position), ())
    two_versions = (VersionSpan(4, 0, 0), VersionSpan(5, 0, 1))
    session.append_action(
        Generation(np.array([22]), np.array([-0.3], np.float32), two_versions, finished=True)
    )
    trajectory = session.trajectory("text", "ok", 1.5)
    assert trajectory.ledgers[0].token_ids.tolist() == [10, 11, 20, 21, 30, 22]
    assert trajectory.ledgers[0].loss_mask.tolist() == [False, False, True, True, False, True]
    spans = [(turn.context, turn.action) for turn in trajectory.turns]
    assert spans == [((0, 2), (2, 4)), ((4, 5), (5, 6))]
    assert trajectory.ledgers[0].version_spans == (
        VersionSpan(4, 2, 4),
        VersionSpan(4, 5, 5),
        VersionSpan(5, 5, 6),
    )
    assert np.allclose(trajectory.ledgers[0].sampler_logprobs, [0, 0, -0.1, -0.2, 0, -0.3])
    assert (trajectory.group_index, trajectory.completion, trajectory.duration_s) == (3, "text", 1.5)


def medium(seed: int = 0) -> Media:
    return Media("image", str(seed), random_image(28, 56, seed)[None], (28, 56), (1, 2, 4), 2)


def test_what_follows_the_last_action_is_dropped_with_its_images() -> None:
    """An image without its placeholder would shift every later image of the micro-batch."""
    seen, unseen = medium(0), medium(1)
    session = Session(make_sample([1, 2], media=(seen,)), group_index=0)
    session.append_action(make_generation([3]))
    session.append_observation(text_prompt([4, 5], session.next_position), (unseen,))
    trajectory = session.trajectory("", "truncated", 0.0)
    assert trajectory.ledgers[0].token_ids.tolist() == [1, 2, 3]
    assert trajectory.ledgers[0].position_ids.shape == (3, 3)
    assert [m.sha256 for m in trajectory.media] == [seen.sha256]


def test_freezing_copies_so_that_the_session_may_go_on() -> None:
    session = Session(make_sample([1]), group_index=0)
    session.append_action(make_generation([2]))
    trajectory = session.trajectory("", "ok", 0.0)
    session.append_action(make_generation([3]))
    assert trajectory.ledgers[0].token_ids.tolist() == [1, 2]
    assert len(trajectory.turns) == 1


# Observations written by a real processor: the ledger must be what the template renders for the whole talk.

QUESTION, REPLY, OBSERVATION = "What is this?", "a 7", "look again 12"


@pytest.mark.parametrize("num_first", [0, 2])
@pytest.mark.parametrize("num_second", [0, 1, 2])
@pytest.mark.parametrize("stopped", [True, False])
def test_extend_equals_the_template_over_the_whole_conversation(
    tiny_model: Path, num_first: int, num_second: int, stopped: bool
) -> None:
    """Conversations have images or none, and the action ended by its stop token or was cut."""
    processor = open_tiny(tiny_model)
    first = [random_image(30 + 28 * i, 56, i) for i in range(num_first)]
    second = [random_image(56, 84 + 28 * i, 9 + i) for i in range(num_second)]
    session = Session(processor.sample(row(QUESTION, first)), group_index=0)
    reply = processor.encode_target(REPLY)
    processor.act(session, make_generation(reply if stopped else reply[:-1], finished=stopped))
    before = snapshot(session)
    observe(processor, session, OBSERVATION, second)

    talk = [
        *row(QUESTION, first)["messages"],
        {"role": "assistant", "content": REPLY},
        *row(OBSERVATION, second)["messages"],
    ]
    whole = processor.sample({"id": "whole", "messages": talk})
    assert session.token_ids == whole.prompt.token_ids.tolist()
    assert session.engine_ids == whole.prompt.engine_ids.tolist()
    assert session.next_position == whole.prompt.next_position
    assert [m.sha256 for m in session.media] == [m.sha256 for m in whole.media]
    assert session.token_ids[: len(before[0])] == before[0]
    session.append_action(make_generation([5]))
    positions = session.trajectory("", "ok", 0.0).ledgers[0].position_ids
    assert (positions[:, :-1] == whole.prompt.position_ids).all()


STRIPS_THOUGHTS = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n"
    "{% for part in message.content %}"
    "{% if part.type == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif message.role == 'assistant' %}"
    "{{ part.text.split('</think>')[-1] }}"
    "{% else %}{{ part.text }}{% endif %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def test_a_template_that_forgets_thoughts_makes_a_fork_of_each_turn_that_thought(tiny_model: Path) -> None:
    """Qwen3 and others leave earlier thoughts out: what was generated stays in its ledger."""
    processor = open_tiny(tiny_model)
    processor.template._hf.chat_template = STRIPS_THOUGHTS
    session = Session(processor.sample(row(QUESTION, [random_image(56, 56)])), 0)
    generated = ["<think>hm</think>a 7", "no thought", "<think>2</think>12"]
    for text in generated:
        processor.act(session, make_generation(processor.encode_target(text)))
        observe(processor, session, "go on", [random_image(56, 84, 1)])
    talk = [*row(QUESTION, [random_image(56, 56)])["messages"]]
    for text in generated:
        talk += [{"role": "assistant", "content": text}, *row("go on", [random_image(56, 84, 1)])["messages"]]
    whole = processor.sample({"id": "whole", "messages": talk})
    assert session.token_ids == whole.prompt.token_ids.tolist()
    trajectory = session.trajectory("", "ok", 0.0)
    assert [[turn.text for turn in ledger.turns] for ledger in trajectory.ledgers] == [
        generated[:1],
        generated[1:],
    ]
    assert trajectory.action_ids == [i for text in generated for i in processor.encode_target(text).tolist()]


def test_tools_are_never_dropped_by_a_template_without_a_word(tiny_model: Path) -> None:
    processor = open_tiny(tiny_model)
    tool = {"type": "function", "function": {"name": "zoom", "description": "", "parameters": {}}}
    with pytest.raises(DataError, match=r"does not support tools.*told_by: system_prompt"):
        processor.sample({**row(QUESTION), "tools": [tool]})
