"""What every model family must hold, without an engine: prompts, ledger, positions and forward pass.

The measure is transformers' own processor and model, on the family's tiny model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import family_config, make_generation, make_group, observe, random_image
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from plain_model import model_of

from vlrl.batch import Batch
from vlrl.errors import DataError
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.omni.thinker import core_of
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.processors.auto import open_processor
from vlrl.registry import BUILT_IN
from vlrl.rollout.session import Session
from vlrl.types import Group, Sample, Score

FAMILIES = sorted(BUILT_IN["processors"])
SIZES = st.lists(st.tuples(st.integers(32, 200), st.integers(32, 200)), max_size=3)
# transformers expands one of several images otherwise than a single one; see processors/llava_onevision.py.
ONE_BY_ONE = ("llava_onevision",)
# Its template writes "assistant \n" before what has been said, and "assistant\n" before what is to be said.
REWRITES = ("llava_onevision",)


@dataclass
class Family:
    """One family's processor, transformers' own, and the model."""

    name: str
    folder: Path
    ours: Any
    theirs: Any
    model: Any

    def sample(self, parts: Sequence[Any], row_id: str = "r") -> Sample:
        """A user's turn; a string is text, an array an image."""
        sample: Sample = self.ours.sample({"id": row_id, "messages": [user(parts)]})
        return sample

    def expected(self, sample: Sample) -> dict[str, torch.Tensor]:
        """transformers' whole processor on the same conversation and the same pixels."""
        messages = [dict(m) for m in sample.messages]
        text = self.theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        images = [Image.fromarray(m.frames[0]) for m in sample.media]
        begun = text.startswith(self.theirs.tokenizer.bos_token or "\0")
        resized = "images_kwargs" in self.ours.engine_options
        return dict(
            self.theirs(
                text=[text],
                images=[images] if images else None,
                return_tensors="pt",
                text_kwargs={"add_special_tokens": not begun},  # as transformers' apply_chat_template has it
                images_kwargs={"do_resize": False} if resized else {},
            )
        )


def user(parts: Sequence[Any]) -> dict[str, Any]:
    content = [
        {"type": "text", "text": p} if isinstance(p, str) else {"type": "image", "image": p} for p in parts
    ]
    return {"role": "user", "content": content}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest, tiny_family: Callable[[str], Path]) -> Family:
    from transformers import AutoProcessor

    folder = tiny_family(request.param)
    model = model_of(folder)
    theirs = AutoProcessor.from_pretrained(folder)
    return Family(request.param, folder, open_processor(family_config(folder)), theirs, model)


# Prompts.


@settings(max_examples=15, deadline=None)
@given(sizes=SIZES, tail=st.sampled_from(["", "?", "\n 12\n"]))
def test_expanded_ids_equal_transformers_own(family: Family, sizes: list[tuple[int, int]], tail: str) -> None:
    """No image, one, several in the middle of text: the ids, and their number from headers alone."""
    parts: list[Any] = ["left "]
    for index, (height, width) in enumerate(sizes[:1] if family.name in ONE_BY_ONE else sizes):
        parts += [random_image(height, width, index), f" right {index}"]
    parts.append(tail)
    sample = family.sample(parts)
    assert sample.prompt.token_ids.tolist() == family.expected(sample)["input_ids"][0].tolist()
    assert family.ours.num_tokens({"id": "r", "messages": [user(parts)]}) == len(sample.prompt.token_ids)


def test_several_images_are_each_expanded_like_one(family: Family) -> None:
    """So that an image that comes later changes no token of an earlier one."""
    a, b = random_image(70, 150, 1), random_image(120, 64, 2)
    both = family.sample(["left ", a, " right ", b, "?"])
    assert [m.num_tokens for m in both.media] == [
        family.sample(["left ", one, "?"]).media[0].num_tokens for one in (a, b)
    ]
    num_text = len(both.prompt.engine_ids) - 2
    assert len(both.prompt.token_ids) == num_text + sum(m.num_tokens for m in both.media)


def test_the_engine_is_given_one_placeholder_per_image(family: Family) -> None:
    sample = family.sample(["left ", random_image(70, 150), " right ", random_image(64, 64), "?"])
    placeholder = family.theirs.tokenizer.convert_tokens_to_ids(family.theirs.image_token)
    assert sample.prompt.engine_ids.tolist().count(placeholder) == 2


def test_a_message_given_as_a_string_is_not_lost(family: Family) -> None:
    """SmolVLM's and LLaVA's published templates leave a string out without a message."""
    plain = family.ours.sample({"id": "r", "messages": [{"role": "user", "content": "Add 3 and 4."}]})
    assert plain.prompt.token_ids.tolist() == family.sample(["Add 3 and 4."]).prompt.token_ids.tolist()
    assert "Add 3 and 4." in family.ours.decode(plain.prompt.token_ids)


def test_positions_equal_transformers_own(family: Family) -> None:
    sample = family.sample(["left ", random_image(70, 150), " right ", random_image(120, 64), "?"])
    prompt = sample.prompt
    if not hasattr(core_of(family.model), "get_rope_index"):
        assert prompt.position_ids.tolist() == [list(range(len(prompt.token_ids)))] * 3
        assert prompt.next_position == len(prompt.token_ids)
        return
    inputs = family.expected(sample)
    given = {name: inputs[name] for name in ("input_ids", "mm_token_type_ids") if name in inputs}
    expected, delta = core_of(family.model).get_rope_index(**given, image_grid_thw=inputs["image_grid_thw"])
    assert prompt.position_ids.tolist() == expected[:, 0].tolist()
    assert prompt.next_position == len(prompt.token_ids) + int(delta)


# The ledger of several turns.


def act(family: Family, session: Session, text: str) -> None:
    family.ours.act(session, make_generation(family.ours.encode_target(text)))


POLICIES: dict[str, dict[str, Any]] = {
    "full": {},
    "last_images": {"policy": "last_images", "num_images": 1},
    "window": {"policy": "window", "num_turns": 1},
}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_session_s_ledger_is_the_rendered_conversation(family: Family, policy: str) -> None:
    """Whatever is shown, the tokens are those of the template and of transformers, or the session forks."""
    a, b, c = random_image(70, 150, 1), random_image(120, 64, 2), random_image(64, 64, 3)
    gone = "(an image that is no longer shown)"
    session = Session(family.sample([a, "Which?"]), 0)
    asked: list[list[Any]] = [[a, "Which?"], [b, "After twelve, why?"], [c, "After three, why?"]]
    for said, images, number in (("twelve", asked[1], 1), ("three", asked[2], 2)):
        act(family, session, said)
        observe(family.ours, session, images[1], [images[0]], **POLICIES[policy])
        talk = [*asked[:number], asked[number]]
        if policy == "last_images":
            talk = [[gone, text] for _, text in talk[:-1]] + [talk[-1]]
        answers = ["twelve", "three"][:number]
        if policy == "window" and number == 2:
            talk, answers = [talk[0], talk[2]], answers[1:]
        messages = [user(talk[0])]
        for answer, parts in zip(answers, talk[1:], strict=True):
            said_before = {"role": "assistant", "content": [{"type": "text", "text": answer}]}
            messages += [said_before, user(parts)]
        rendered = family.ours.sample({"id": "r", "messages": messages})
        assert session.token_ids == rendered.prompt.token_ids.tolist()
        assert session.engine_ids == rendered.prompt.engine_ids.tolist()
        assert [m.sha256 for m in session.media] == [m.sha256 for m in rendered.media]
        if family.name not in ONE_BY_ONE or len(rendered.media) == 1:
            assert session.token_ids == family.expected(rendered)["input_ids"][0].tolist()
    act(family, session, "done")
    trajectory = session.trajectory("done", "ok", 0.0)
    last = trajectory.ledgers[-1]
    num_context = last.turns[-1].action[0]
    assert last.position_ids[:, :num_context].tolist() == rendered.prompt.position_ids.tolist()
    forks = {"full": 0, "last_images": 2, "window": 1}[policy] if family.name not in REWRITES else 2
    assert len(trajectory.ledgers) == forks + 1
    assert [turn.text.strip() for turn in trajectory.turns] == ["twelve", "three", "done"]
    generated = [family.ours.encode_target(text).tolist() for text in ("twelve", "three", "done")]
    assert trajectory.action_ids == [token for tokens in generated for token in tokens]


def test_the_mask_is_exactly_what_the_assistant_said(family: Family) -> None:
    """The same words in the user's turn, and the template's own tokens, are not trained, as spans decide."""
    session = Session(family.sample([random_image(64, 64), "twelve"]), 0)
    said = [family.ours.encode_target("twelve"), family.ours.encode_target("12 3")]
    act(family, session, "twelve")
    observe(family.ours, session, "twelve")
    act(family, session, "12 3")
    observe(family.ours, session, "never answered")
    trajectory = session.trajectory("", "ok", 0.0)
    assert trajectory.action_ids == np.concatenate(said).tolist()
    [first, second] = trajectory.turns
    assert (first.action[1] - first.action[0], second.action[1] - second.action[0]) == (
        len(said[0]),
        len(said[1]),
    )


def test_reference_turns_say_what_a_session_says(family: Family) -> None:
    """SFT on a whole conversation trains on the ledger that RL would have had."""
    a, b = random_image(70, 150, 1), random_image(64, 64, 2)
    answer = {"role": "assistant", "content": "twelve"}
    sample = family.ours.sample(
        {"id": "r", "messages": [user([a, "Which?"]), answer, user([b, "Why?"])], "target": "done"}
    )
    if family.name in REWRITES:
        with pytest.raises(DataError, match=r"rewrites earlier turns; set sft\.train_on=last"):
            family.ours.reference_turns(sample)
        return
    turns = family.ours.reference_turns(sample)
    session = Session(family.sample([a, "Which?"]), 0)
    act(family, session, "twelve")
    observe(family.ours, session, "Why?", [b])
    act(family, session, "done")
    ledger = [i for t in turns for i in (*t.context.token_ids.tolist(), *t.action_ids.tolist())]
    assert ledger == session.token_ids
    assert [len(t.media) for t in turns] == [1, 1]


# Special tokens.


def test_text_that_holds_a_special_token_is_refused(family: Family) -> None:
    for token in (*family.ours.media_tokens, family.ours.end_of_turn):
        for parts in ([f"look: {token}"], [random_image(64, 64), f"{token} there"]):
            with pytest.raises(DataError, match=r"'r'.*special tokens"):
                family.sample(parts)


def test_an_observation_may_quote_a_special_token(family: Family) -> None:
    """A page or a tool's error may repeat what the model said: it is shown, but as words."""
    session = Session(family.sample(["hi"]), 0)
    act(family, session, "go")
    before = len(session.token_ids)
    quoted = " ".join((*family.ours.media_tokens, family.ours.end_of_turn))
    observe(family.ours, session, f"it says {quoted}")
    seen = session.token_ids[before:] if family.name not in REWRITES else session.token_ids
    assert not set(seen) & set(family.ours.banned_token_ids)
    assert f"it says {quoted[0]}" in family.ours.decode(np.array(seen))


def test_media_tokens_are_banned_and_stop_tokens_are_not(family: Family) -> None:
    banned, stops = family.ours.banned_token_ids, family.ours.stop_token_ids
    assert family.ours.token_texts(np.array(banned)) == list(family.ours.media_tokens)
    assert not set(banned) & set(stops)
    prompt = family.sample([random_image(70, 150), "?"]).prompt
    expanded = prompt.token_ids[np.isin(prompt.token_ids, banned)]
    assert family.theirs.tokenizer.convert_tokens_to_ids(family.theirs.image_token) in expanded
    assert family.ours.encode_target("12")[-1] == stops[0]


# The forward pass.


def lay_out(family: Family, groups: list[Group], **options: Any) -> Batch:
    """All groups in one micro-batch."""
    for group in groups:
        for trajectory in group.trajectories:
            trajectory.score = Score(0.0, {})
    return pack(
        groups,
        family.ours.pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=10_000,
            aggregation="token",
            max_completion_tokens=8,
            keep_zero_advantage=True,
            **options,
        ),
    )


def logprobs_of(family: Family, groups: list[Group], **options: Any) -> list[np.ndarray[Any, Any]]:
    """The trainer's, of every group's trained tokens, all in one micro-batch."""
    batch = lay_out(family, groups, **options)
    wrapped = TreeLogprobs(family.model, temperature=1.0, banned_token_ids=family.ours.banned_token_ids)
    [[micro_batch]] = batch
    with torch.no_grad():
        logprobs, _ = wrapped(DeviceBatch.of(micro_batch, torch.device("cpu")))
    owners = np.array(micro_batch.token_sample_ids)[micro_batch.sequence_ids]
    return [logprobs.numpy()[owners == g.trajectories[0].sample.id] for g in groups]


def plain_logprobs(family: Family, sample: Sample, completion: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """transformers' own forward of prompt and completion, with its own processor's tensors."""
    inputs = family.expected(sample)
    num_prompt = inputs["input_ids"].shape[1]
    tail = torch.tensor(completion)[None]
    for name, rest in (("input_ids", tail), ("mm_token_type_ids", torch.zeros_like(tail))):
        if name in inputs:
            inputs[name] = torch.cat([inputs[name], rest.to(inputs[name].dtype)], dim=1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    with torch.no_grad():
        logits = family.model(**inputs).logits[0, num_prompt - 1 : -1].float()
    logits[:, list(family.ours.banned_token_ids)] = float("-inf")
    return torch.log_softmax(logits, -1).gather(1, tail[0][:, None])[:, 0].numpy()


def test_the_trainer_s_forward_equals_transformers_own(family: Family) -> None:
    """Several trees of branches, no image or more in one micro-batch."""
    images = [random_image(70, 150, 1), random_image(120, 64, 2)]
    several = images[: 1 if family.name in ONE_BY_ONE else 2]
    samples = [
        family.sample(["which? ", *several, " left"], "several"),
        family.sample(["no image"], "none"),
        family.sample([*images[1:], "?"], "one"),
    ]
    groups = [make_group([5, 3], sample=s, seed=i) for i, s in enumerate(samples)]
    for group, ours in zip(groups, logprobs_of(family, groups), strict=True):
        theirs = [plain_logprobs(family, t.sample, np.array(t.action_ids)) for t in group.trajectories]
        assert np.abs(ours - np.concatenate(theirs)).max() < 1e-4


def test_an_image_shown_again_is_computed_once_and_stands_at_every_place(family: Family) -> None:
    """Forward and backward: the tower's gradient is the sum over the places."""
    a, b = random_image(70, 150, 1), random_image(120, 64, 2)
    several = [a] if family.name in ONE_BY_ONE else [b, a, b]
    samples = [family.sample(["which? ", *several], "several"), family.sample([a, "?"], "one")]
    groups = [make_group([5, 3], sample=s, seed=i) for i, s in enumerate(samples)]
    for group, ours in zip(groups, logprobs_of(family, groups), strict=True):
        theirs = [plain_logprobs(family, t.sample, np.array(t.action_ids)) for t in group.trajectories]
        assert np.abs(ours - np.concatenate(theirs)).max() < 1e-4
    once, often = tower_gradient(family, groups), tower_gradient(family, [told_apart(g) for g in groups])
    assert np.abs(once - often).max() < 1e-4 * np.abs(often).max()


def told_apart(group: Group) -> Group:
    """The same, but no image is known to be another's equal."""
    for trajectory in group.trajectories:
        [ledger] = trajectory.ledgers
        names = [f"{trajectory.sample.id} {place}" for place in range(len(ledger.media))]
        media = tuple(replace(m, sha256=name) for m, name in zip(ledger.media, names, strict=True))
        trajectory.ledgers = (replace(ledger, media=media),)
    return group


def tower_gradient(family: Family, groups: list[Group]) -> np.ndarray[Any, Any]:
    """Gradient of the sum of the trained logprobs by the tower's first weights that have one."""
    [[micro_batch]] = lay_out(family, groups)
    wrapped = TreeLogprobs(family.model, temperature=1.0, banned_token_ids=family.ours.banned_token_ids)
    family.model.zero_grad()
    with torch.enable_grad():
        wrapped(DeviceBatch.of(micro_batch, torch.device("cpu")))[0].sum().backward()
    found = [p.grad for n, p in family.model.named_parameters() if "vis" in n and p.grad is not None]
    gradient = np.concatenate([g.flatten().numpy() for g in found])
    family.model.zero_grad()
    return gradient


def test_swapping_two_images_changes_what_the_trainer_computes(family: Family) -> None:
    a, b = random_image(64, 64, 1), random_image(64, 64, 2)
    [one] = logprobs_of(family, [make_group([6], sample=family.sample([a, b, "?"]))])
    [other] = logprobs_of(family, [make_group([6], sample=family.sample([b, a, "?"]))])
    assert np.abs(one - other).max() > 1e-3


def test_a_micro_batch_without_images_may_call_the_tower_all_the_same(family: Family) -> None:
    """Ranks whose calls differ wait for each other under ZeRO-3; the blank image changes nothing."""
    group = make_group([4], sample=family.sample(["no image"]))
    inputs = family.ours.pixels([])
    with torch.no_grad():
        features = core_of(family.model).get_image_features(
            **{k: torch.tensor(v) for k, v in inputs.items()}, return_dict=True
        )
    assert features.pooler_output is not None
    theirs = plain_logprobs(
        family, group.trajectories[0].sample, group.trajectories[0].ledgers[0].token_ids[-4:]
    )
    for always in (True, False):
        [ours] = logprobs_of(family, [group], tower_always=always)
        assert np.abs(ours - theirs).max() < 1e-5
