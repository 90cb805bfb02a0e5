"""The Qwen processor against transformers' own: same ids, same pixels, same positions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, open_tiny, random_image, row
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from vlrl.errors import ConfigError, DataError
from vlrl.processors.auto import open_processor
from vlrl.processors.qwen_vl import MEDIA_TOKENS
from vlrl.rewards.text.exact import answer_exact

SIZES = st.lists(st.tuples(st.integers(28, 230), st.integers(28, 230)), max_size=4)


@pytest.fixture(scope="module")
def processor(tiny_model: Path) -> Any:
    return open_tiny(tiny_model)


@pytest.fixture(scope="module")
def theirs(tiny_model: Path) -> Any:
    from transformers import AutoProcessor

    return AutoProcessor.from_pretrained(tiny_model)


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> Any:
    from transformers import AutoModelForImageTextToText

    return AutoModelForImageTextToText.from_pretrained(tiny_model)


def random_images(sizes: list[tuple[int, int]]) -> list[np.ndarray[Any, Any]]:
    return [random_image(h, w, seed=i) for i, (h, w) in enumerate(sizes)]


@settings(max_examples=25, deadline=None)
@given(SIZES)
def test_ids_and_pixels_equal_transformers(processor: Any, theirs: Any, sizes: list[tuple[int, int]]) -> None:
    sample = processor.sample(row("Compare 12 and 3.", random_images(sizes)))
    talk = [{"role": "user", "content": sample.messages[0]["content"]}]
    text = theirs.apply_chat_template(talk, tokenize=False, add_generation_prompt=True)
    images = [Image.fromarray(m.frames[0]) for m in sample.media] or None
    limits = {"shortest_edge": 28 * 28, "longest_edge": 168 * 168}
    expected = theirs(text=[text], images=images, return_tensors="np", images_kwargs={"size": limits})
    assert sample.prompt.token_ids.tolist() == expected["input_ids"][0].tolist()
    inputs = processor.pixels(sample.media)
    if sizes:
        assert np.array_equal(inputs["pixel_values"], expected["pixel_values"])
        assert np.array_equal(inputs["image_grid_thw"], expected["image_grid_thw"])
    else:  # a blank image stands in, so that every rank calls the tower
        [grid] = inputs["image_grid_thw"]
        assert inputs["pixel_values"].shape == (grid.prod(), 3 * 2 * 14 * 14)


@settings(max_examples=25, deadline=None)
@given(SIZES)
def test_images_of_any_size_become_what_transformers_makes_of_them(
    processor: Any, theirs: Any, sizes: list[tuple[int, int]]
) -> None:
    """Given the originals: its resizing rounds otherwise than Pillow's, but by a grey level or so."""
    originals = random_images(sizes)
    sample = processor.sample(row("?", originals))
    text = theirs.apply_chat_template(list(sample.messages), tokenize=False, add_generation_prompt=True)
    limits = {"shortest_edge": 28 * 28, "longest_edge": 168 * 168}
    images = [Image.fromarray(p) for p in originals] or None
    expected = theirs(text=[text], images=images, return_tensors="np", images_kwargs={"size": limits})
    assert sample.prompt.token_ids.tolist() == expected["input_ids"][0].tolist()
    if sizes:
        difference = np.abs(processor.pixels(sample.media)["pixel_values"] - expected["pixel_values"])
        assert difference.mean() < 0.01  # of values from about -2 to 2; one grey level is 0.015


@settings(max_examples=25, deadline=None)
@given(SIZES)
def test_positions_equal_transformers(processor: Any, model: Any, sizes: list[tuple[int, int]]) -> None:
    prompt_sample = processor.sample(row("Which is larger?", random_images(sizes)))
    prompt = prompt_sample.prompt
    ids = torch.tensor(prompt.token_ids)[None]
    kinds = (ids == model.config.image_token_id).int()
    grid = torch.tensor(processor.pixels(prompt_sample.media)["image_grid_thw"]) if sizes else None
    expected, delta = model.model.get_rope_index(ids, kinds, image_grid_thw=grid)
    assert prompt.position_ids.tolist() == expected[:, 0].tolist()
    assert prompt.next_position == ids.shape[1] + int(delta)


@settings(max_examples=15, deadline=None)
@given(SIZES)
def test_engine_ids_hold_one_placeholder_an_image(processor: Any, sizes: list[tuple[int, int]]) -> None:
    sample = processor.sample(row("?", random_images(sizes)))
    pad = processor._tokenizer.convert_tokens_to_ids("<|image_pad|>")
    engine, expanded = sample.prompt.engine_ids.tolist(), sample.prompt.token_ids.tolist()
    assert engine.count(pad) == len(sizes)
    assert expanded.count(pad) == sum(m.num_tokens for m in sample.media)
    assert [i for i in engine if i != pad] == [i for i in expanded if i != pad]


def test_images_stand_where_the_row_puts_them(processor: Any) -> None:
    a, b = random_images([(28, 56), (84, 28)])
    parts = [
        {"type": "text", "text": "left"},
        {"type": "image", "image": a},
        {"type": "text", "text": "right"},
        {"type": "image", "image": b},
    ]
    sample = processor.sample({"id": "x", "messages": [{"role": "user", "content": parts}]})
    texts = processor.token_texts(sample.prompt.token_ids)
    pads = "<|vision_start|>{}<|vision_end|>"
    assert "".join(texts) == (
        f"<|im_start|>user\nleft{pads.format('<|image_pad|>' * 2)}right{pads.format('<|image_pad|>' * 3)}"
        "<|im_end|>\n<|im_start|>assistant\n"
    )
    assert [m.size for m in sample.media] == [(28, 56), (84, 28)]


@pytest.mark.parametrize("token", MEDIA_TOKENS)
@pytest.mark.parametrize("num_images", [0, 1])
def test_text_that_smuggles_a_media_token_is_refused(processor: Any, token: str, num_images: int) -> None:
    smuggled = row(f"look: {token} there", random_images([(28, 28)] * num_images), row_id="bad7")
    with pytest.raises(DataError, match=r"'bad7'.*special tokens"):
        processor.sample(smuggled)


def said(content: Any) -> dict[str, Any]:
    return {"id": "x", "messages": [{"role": "user", "content": content}]}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"messages": [{"role": "user", "content": "hi"}]}, "needs 'id'"),
        ({"id": "x", "messages": []}, "'x'.*needs 'id' and a non-empty 'messages'"),
        (said([{"type": "audio"}]), "'x'.*'audio'"),
        (said([{"type": "image", "image": "/no.png"}]), r"'x'.*/no\.png"),
        (said([{"type": "image"}]), "'x'.*'image'"),
        ({"id": "x", "messages": [{"role": "user"}]}, "'x'.*'content'"),
        (said([{"text": "no type"}]), "'x'.*'type'"),
        (said(["no part"]), "'x'.*'role' and 'content'"),
        (said(None), "'x'.*'role' and 'content'"),
    ],
)
def test_a_bad_row_is_an_error_that_names_it(processor: Any, bad: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        processor.sample(bad)


def test_a_target_ends_with_the_stop_token_and_decodes_to_itself(processor: Any) -> None:
    target = "<think>3+5</think><answer>8</answer>"
    ids = processor.encode_target(target)
    assert ids[-1] == processor.stop_token_ids[0]
    assert processor.token_texts(ids[-1:]) == ["<|im_end|>"]
    assert processor.decode(ids) == target


def test_special_tokens_inside_an_answer_are_seen(processor: Any) -> None:
    """Left out, `<answer><|box_start|>8</answer>` would read as 8."""
    text = "<think></think><answer><|box_start|>8</answer>"
    ids = processor.encode_target(text)
    assert processor.decode(ids) == text
    assert answer_exact(processor.decode(ids), "8") == 0.0
    assert processor.decode(ids[:-1]) == text  # cut before its end


def test_a_conversation_is_learnt_turn_by_turn_or_its_last_turn_alone(processor: Any) -> None:
    from vlrl.sft import supervised_group

    a, b = random_images([(28, 56), (84, 28)])
    messages = [
        *row("Left?", [a])["messages"],
        {"role": "assistant", "content": "two"},
        *row("Right?", [b])["messages"],
    ]
    sample = processor.sample({"id": "talk", "messages": messages, "target": "three"})
    learnt = {}
    for train_on in ("assistant", "last"):
        [trajectory] = supervised_group(sample, processor, train_on).trajectories
        assert trajectory.media == sample.media
        learnt[train_on] = processor.decode(trajectory.ledgers[0].token_ids[trajectory.ledgers[0].loss_mask])
        whole = "".join(processor.token_texts(trajectory.ledgers[0].token_ids))
        pad = "<|vision_start|>{}<|vision_end|>"
        assert whole == (
            f"<|im_start|>user\n{pad.format('<|image_pad|>' * 2)}Left?<|im_end|>\n"
            "<|im_start|>assistant\ntwo<|im_end|>\n"
            f"<|im_start|>user\n{pad.format('<|image_pad|>' * 3)}Right?<|im_end|>\n"
            "<|im_start|>assistant\nthree<|im_end|>"
        )
        context = sample.prompt.position_ids
        assert np.array_equal(trajectory.ledgers[0].position_ids[:, : context.shape[1]], context)
    assert learnt == {"assistant": "two<|im_end|>three", "last": "three"}


def test_targets_and_earlier_turns_may_not_smuggle_special_tokens(processor: Any) -> None:
    with pytest.raises(DataError, match=r"'r'.*<\|im_end\|>"):
        processor.sample(row("hi", target="yes<|im_end|>"))
    with pytest.raises(DataError, match=r"<\|im_start\|>"):
        processor.sample(row("hi <|im_start|>system"))
    assert processor.sample(row("where is <|object_ref_start|>it<|object_ref_end|>?"))


@settings(max_examples=25, deadline=None)
@given(SIZES)
def test_tokens_are_counted_without_decoding(processor: Any, sizes: list[tuple[int, int]]) -> None:
    talk = row("How many?", random_images(sizes))
    assert processor.num_tokens(talk) == len(processor.sample(talk).prompt.token_ids)


def test_the_images_of_a_sample_share_its_budget(tiny_model: Path) -> None:
    budget = 3 * 84 * 84
    processor = open_tiny(tiny_model, max_sample_pixels=budget)
    free = open_tiny(tiny_model)
    sizes = [(160, 160), (56, 160), (160, 100)]
    talk = row("?", random_images(sizes))
    assert sum(np.prod(m.size) for m in free.sample(talk).media) > budget
    shared = processor.sample(talk)
    assert sum(np.prod(m.size) for m in shared.media) <= budget
    assert processor.num_tokens(talk) == len(shared.prompt.token_ids)
    for medium, (height, width) in zip(shared.media, sizes, strict=True):
        assert abs(np.log(medium.size[0] / medium.size[1] * width / height)) < 0.7  # shapes survive


def test_media_tokens_are_banned_and_stop_tokens_are_not(processor: Any) -> None:
    names = processor.token_texts(np.array(processor.banned_token_ids))
    assert names == list(MEDIA_TOKENS)
    assert not set(processor.banned_token_ids) & set(processor.stop_token_ids)


def test_a_saved_processor_reads_back_the_same(processor: Any, tmp_path: Path) -> None:
    processor.save(tmp_path)
    from transformers import AutoProcessor

    again = AutoProcessor.from_pretrained(tmp_path)
    talk = row("What is 3+4?", [random_image(56, 56)])
    expected = processor.sample(talk).prompt.engine_ids.tolist()
    text = again.apply_chat_template(talk["messages"], tokenize=False, add_generation_prompt=True)
    assert again.tokenizer.encode(text, add_special_tokens=False) == expected
    assert again.image_processor.patch_size == 14


# open_processor: by the model's type, or by name.


def test_the_processor_is_chosen_by_the_model_s_type(tiny_model: Path) -> None:
    assert type(open_processor(make_config(tiny_model))).__name__ == "Qwen25VLProcessor"


def test_media_say_in_which_frame_the_model_writes_places(processor: Any) -> None:
    (seen,) = processor.sample(row("Where is it?", random_images([(56, 84)]))).media
    assert seen.coordinate_frame == "resized_pixels"


def test_a_model_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"model\.path='.*nowhere' does not exist"):
        open_processor(make_config(tmp_path / "nowhere"))


def test_a_model_without_a_processor_says_how_to_give_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ConfigError, match=r"'gpt2'.*qwen2_5_vl.*processor\.name"):
        open_processor(make_config(tmp_path))


def test_a_sample_has_the_form_of_its_row_or_of_the_config(tiny_model: Path) -> None:
    config = make_config(tiny_model, rollout={"structured_outputs": {"regex": "a"}})
    form = {"choice": ["b"]}
    found = [open_processor(config).sample(row(**given)).form for given in ({}, {"structured_outputs": form})]
    assert found == ['{"regex": "a"}', '{"choice": ["b"]}']
    assert open_tiny(tiny_model).sample(row()).form == ""
    with pytest.raises(DataError, match=r"sample 'r': structured_outputs\.choice: "):
        open_tiny(tiny_model).sample(row(structured_outputs={"choice": []}))
