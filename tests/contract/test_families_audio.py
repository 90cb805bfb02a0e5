"""Families that hear: prompts, features and logprobs with audio, against transformers' own.

Engines are compared in test_families_engines.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import family_config, make_generation, make_group, observe, random_image
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_model import model_of
from sounds import audio_part, noise

from vlrl.errors import DataError
from vlrl.model.features import StepFeatures
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.omni.thinker import core_of
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.processors.auto import open_processor
from vlrl.rollout.session import Session
from vlrl.types import Group, Sample, Score

NUM_TOKENS = {"gemma4": [15, 20], "qwen2_5_omni": [12, 17]}
"""Of half a second and of 0.7 s; Gemma's have a token before and one behind."""
CPU = torch.device("cpu")


@dataclass
class Family:
    name: str
    ours: Any
    theirs: Any
    model: Any

    def sample(self, parts: Sequence[Any], row_id: str = "r") -> Sample:
        """A user's turn: text, arrays [height, width, 3] as images, arrays [num_samples] as sounds."""
        content = [_part(part) for part in parts]
        sample: Sample = self.ours.sample({"id": row_id, "messages": [{"role": "user", "content": content}]})
        return sample

    def expected(self, sample: Sample) -> dict[str, Any]:
        """transformers' whole processor on the same pixels and samples, padded as it pads."""
        messages = [dict(m) for m in sample.messages]
        images = [np.array(m.frames[0]) for m in sample.media if m.kind == "image"]
        resized = "images_kwargs" in self.ours.engine_options
        return dict(
            self.theirs(
                text=[self.theirs.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)],
                images=images or None,
                audio=[m.samples for m in sample.media if m.kind == "audio"] or None,
                return_tensors="pt",
                images_kwargs={"do_resize": False} if resized else {},
                text_kwargs={"add_special_tokens": False},
            )
        )

    def packed(self, groups: Sequence[Group], **options: Any) -> Any:
        for group in groups:
            for trajectory in group.trajectories:
                trajectory.score = Score(0.0, {})
        own = {"num_ranks": 1, "max_tokens": 10_000, "aggregation": "token", "max_completion_tokens": 8}
        return pack(groups, self.ours.pixels, PackOptions(**own | options, keep_zero_advantage=True))

    def wrapped(self) -> TreeLogprobs:
        banned = self.ours.banned_token_ids
        return TreeLogprobs(self.model, temperature=1.0, banned_token_ids=banned)


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    return {"type": "image", "image": part} if part.ndim == 3 else audio_part(part)


@pytest.fixture(scope="module", params=sorted(NUM_TOKENS))
def family(request: pytest.FixtureRequest, tiny_family: Callable[[str], Path]) -> Family:
    from transformers import AutoProcessor

    folder = tiny_family(request.param)
    theirs = AutoProcessor.from_pretrained(folder)
    return Family(request.param, open_processor(family_config(folder)), theirs, model_of(folder))


@settings(max_examples=10, deadline=None)
@given(
    samples=st.lists(st.integers(1600, 40_000), min_size=1, max_size=3),
    image_at=st.sampled_from([None, 0, 1]),
)
def test_ids_features_and_positions_are_transformers_own(
    family: Family, samples: list[int], image_at: int | None
) -> None:
    """Whatever the lengths are; features to the last bit, though transformers pads each audio to 300 s."""
    parts: list[Any] = ["Before "]
    for number, count in enumerate(samples):
        if number == image_at:
            parts.append(random_image(70, 150))
        parts += [noise(count / 16_000, number), f" then {number} "]
    sample = family.sample(parts)
    inputs, ours = family.expected(sample), family.ours.pixels(sample.media)
    assert sample.prompt.token_ids.tolist() == inputs["input_ids"][0].tolist()
    row = {"id": "r", "messages": [{"role": "user", "content": [_part(part) for part in parts]}]}
    assert family.ours.num_tokens(row) == len(sample.prompt.token_ids)
    for mine, theirs in zip(heard(ours), heard(inputs), strict=True):
        assert np.array_equal(mine, theirs)
    if not hasattr(core_of(family.model), "get_rope_index"):
        assert sample.prompt.position_ids.tolist() == [list(range(len(sample.prompt.token_ids)))] * 3
        return
    lengths, grid = inputs["feature_attention_mask"].sum(-1), inputs.get("image_grid_thw")
    found, delta = core_of(family.model).get_rope_index(
        inputs["input_ids"],
        image_grid_thw=torch.zeros(0, 3, dtype=torch.long) if grid is None else grid,
        audio_seqlens=lengths,
    )
    assert sample.prompt.position_ids.tolist() == found[:, 0].tolist()
    assert sample.prompt.next_position == len(sample.prompt.token_ids) + int(delta)


def heard(inputs: dict[str, Any]) -> list[np.ndarray[Any, Any]]:
    """The spectrogram [num_frames, num_pitches] of each audio without padding."""
    rows = np.asarray(inputs["input_features"])
    if "input_features_mask" in inputs:  # Gemma 4's
        masks = np.asarray(inputs["input_features_mask"]).astype(bool)
    else:
        rows, masks = rows.swapaxes(1, 2), np.asarray(inputs["feature_attention_mask"]).astype(bool)
    return [row[: len(mask)][mask] for row, mask in zip(rows, masks, strict=True)]


def logprobs_of(family: Family, groups: list[Group]) -> list[np.ndarray[Any, Any]]:
    """The trainer's, of every group's trained tokens, all in one micro-batch."""
    [[micro_batch]] = family.packed(groups)
    with torch.no_grad():
        logprobs, _ = family.wrapped()(DeviceBatch.of(micro_batch, CPU))
    owners = np.array(micro_batch.token_sample_ids)[micro_batch.sequence_ids]
    return [logprobs.numpy()[owners == g.trajectories[0].sample.id] for g in groups]


def plain_logprobs(family: Family, sample: Sample, completion: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """transformers' own forward of prompt and completion, with its own processor's tensors."""
    inputs = family.expected(sample)
    num_prompt, tail = inputs["input_ids"].shape[1], torch.tensor(completion)[None]
    for name, rest in (("input_ids", tail), ("mm_token_type_ids", torch.zeros_like(tail))):
        if name in inputs:
            inputs[name] = torch.cat([inputs[name], rest], dim=1)
    inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    with torch.no_grad():
        logits = family.model(**inputs).logits[0, num_prompt - 1 : -1].float()
    logits[:, list(family.ours.banned_token_ids)] = float("-inf")
    return torch.log_softmax(logits, -1).gather(1, tail[0][:, None])[:, 0].numpy()


def test_the_trainer_s_forward_equals_transformers_own(family: Family) -> None:
    """Sounds, an image and none of both in one micro-batch; a sound that two prompts share is heard once."""
    image, a, b = random_image(70, 150, 1), noise(0.5, 1), noise(1.2, 2)
    samples = [
        family.sample([a, "which? ", image, b, " left"], "several"),
        family.sample(["nothing"], "none"),
        family.sample([b, "?", a], "sounds"),
        family.sample([image, "?"], "image"),
    ]
    groups = [make_group([5, 3], sample=s, seed=i) for i, s in enumerate(samples)]
    for group, ours in zip(groups, logprobs_of(family, groups), strict=True):
        theirs = [plain_logprobs(family, t.sample, np.array(t.action_ids)) for t in group.trajectories]
        assert np.abs(ours - np.concatenate(theirs)).max() < 1e-4


def test_what_is_heard_decides_what_the_trainer_computes(family: Family) -> None:
    """Silence in place of a loud sound is another prompt, and so are two that are swapped."""
    silence, loud = np.zeros(8000, np.float32), noise(0.5, 1, loud=1.0)
    [found] = logprobs_of(family, [make_group([6], sample=family.sample([silence, loud, "?"]))])
    for parts in ([loud, silence, "?"], [silence, silence, "?"]):
        [other] = logprobs_of(family, [make_group([6], sample=family.sample(parts))])
        assert np.abs(found - other).max() > 1e-4


@pytest.mark.parametrize("images_once", [True, False])
def test_all_ranks_call_the_same_towers_in_every_micro_batch(family: Family, images_once: bool) -> None:
    """Silence and blank images stand in: under ZeRO-3 ranks whose calls differ wait forever."""
    image, sound = random_image(70, 150, 1), noise(0.5, 1)
    groups = [
        make_group([5], sample=family.sample(parts, str(i)), seed=i)
        for i, parts in enumerate([[sound, "a"], ["b"], [image, "c"], ["d"], [image, sound, "e"], ["f"]])
    ]
    ranks = family.packed(groups, num_ranks=2, max_tokens=30, images_once=images_once)
    expected = {
        group.trajectories[0].sample.id: plain_logprobs(
            family, group.trajectories[0].sample, np.array(group.trajectories[0].action_ids)
        )
        for group in groups
    }
    calls: list[list[list[str]]] = []
    for micro_batches in ranks:
        wrapped, kept, of_rank = family.wrapped(), StepFeatures(), []
        for micro_batch in micro_batches:
            called: list[str] = []
            with _noted(family.model, called), torch.no_grad():
                logprobs, _ = wrapped(DeviceBatch.of(micro_batch, CPU), kept)
            of_rank.append(called)
            owners = np.array(micro_batch.token_sample_ids)[micro_batch.sequence_ids]
            for name in set(owners.tolist()):
                assert np.abs(logprobs.numpy()[owners == name] - expected[name]).max() < 1e-4
        calls.append(of_rank)
    assert calls[0] == calls[1]
    assert any("audio_tower" in called for called in calls[0])
    assert not all("audio_tower" in called for called in calls[0])  # only where somebody hears


class _noted:
    """Notes the calls of a model's towers, by name."""

    def __init__(self, model: Any, called: list[str]) -> None:
        towers = {name.rpartition(".")[2]: module for name, module in model.named_modules()}
        self._hooks = [
            towers[name].register_forward_pre_hook(lambda *_, name=name: called.append(name))
            for name in ("visual", "vision_tower", "audio_tower")
            if name in towers
        ]

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: Any) -> None:
        for hook in self._hooks:
            hook.remove()


def test_a_sound_that_comes_in_a_later_turn_is_appended_to_the_ledger(family: Family) -> None:
    sample = family.sample([noise(0.5, 1), "Which?"])
    session = Session(sample, 0)
    family.ours.act(session, make_generation(family.ours.encode_target("twelve")))
    parts = [audio_part(noise(0.7, 2)), {"type": "text", "text": "And this?"}]
    message = family.ours.message("user", parts, "r")
    session.append_message(message, "And this?")
    family.ours.show(session, session.conversation)
    family.ours.act(session, make_generation(family.ours.encode_target("three")))
    observe(family.ours, session, "Both.")
    assert [m.num_tokens for m in session.media] == NUM_TOKENS[family.name]
    [ledger] = session.trajectory("", "ok", 0.0).ledgers
    said = {"role": "assistant", "content": "twelve"}
    first, later = sample.messages[0], message.message
    talk = [first, said, later, {"role": "assistant", "content": "three"}]
    last = {"role": "user", "content": [{"type": "text", "text": "Both."}]}
    text = family.theirs.apply_chat_template([*talk, last], tokenize=False, add_generation_prompt=True)
    sounds = [m.samples for m in session.media]
    theirs = family.theirs(text=[text], audio=sounds, return_tensors="pt")["input_ids"][0].tolist()
    assert session.token_ids == theirs
    assert ledger.token_ids.tolist() == theirs[: len(ledger.token_ids)]


@pytest.mark.parametrize("seconds", [0.02, 301])
def test_a_sound_that_is_too_short_or_too_long_is_refused(family: Family, seconds: float) -> None:
    limits = {"gemma4": "0.1 to 30", "qwen2_5_omni": "0.03 to 300"}[family.name]
    with pytest.raises(
        DataError, match=rf"sample 'r'.*lasts {seconds:.2f} s, and the model takes {limits} s"
    ):
        family.sample([np.zeros(round(seconds * 16_000), np.float32), "?"])


def test_a_family_that_does_not_hear_says_so(tiny_model: Path) -> None:
    processor = open_processor(family_config(tiny_model))
    messages = [{"role": "user", "content": [audio_part(noise(0.5, 1))]}]
    with pytest.raises(DataError, match=r"'r': Qwen25VLProcessor takes no audio; docs/families\.md"):
        processor.sample({"id": "r", "messages": messages})
