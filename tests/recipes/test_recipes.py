"""Every recipe of configs/ on a small twin of its data: what is read, what is asked, what is rewarded."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from builders import make_trajectory
from recipe_twins import Recipe, say_box, say_boxes

from vlrl.check.data.check import check_data
from vlrl.check.data.plan import plan_check
from vlrl.check.data.summary import summarise
from vlrl.config import Config
from vlrl.config.data import DatasetConfig
from vlrl.config.options import RewardConfig
from vlrl.data import open_dataset
from vlrl.processors.auto import open_processor
from vlrl.scoring.compose import ComposedReward
from vlrl.types import Sample

OWN_PIXELS = {"vlm_r1_rec": say_box, "vlm_r1_ovd": say_boxes}


def samples(config: Config, source: DatasetConfig) -> list[Sample]:
    processor = open_processor(config)
    return [processor.sample(row) for row in open_dataset(source, "data.train")]


def totals(rewards: list[RewardConfig], *said: tuple[Sample, str]) -> list[float]:
    """The composed reward of each completion of a sample."""

    async def score(reward: ComposedReward) -> list[float]:
        scored = [make_trajectory(sample, [1, 2, 3], completion=text) for sample, text in said]
        return [(await reward.score(each)).total for each in scored]

    with ComposedReward(rewards, inline=True) as reward:
        return asyncio.run(score(reward))


@pytest.mark.slow(together=True)
def test_the_data_check_passes(recipe: Recipe, recipe_model: Path) -> None:
    """`vlrl data check configs/RECIPE.yaml`, with the tiny model's tokens."""
    job, notes = plan_check(recipe.config(recipe_model))
    result = summarise(check_data(job, notes, num_workers=1, on_row=lambda *_: None))
    assert result["ok"], result["bad"]
    assert result["num_rows"] >= 12


def test_the_right_answer_is_worth_most_and_silence_least(recipe: Recipe, recipe_model: Path) -> None:
    config = recipe.config(recipe_model)
    given = samples(config, config.data.train[0])
    said = [(s, text) for s in given for text in (recipe.right(s), recipe.right(s) * 2, recipe.wrong, "")]
    found = np.reshape(totals(config.rewards, *said), (len(given), 4))
    best, repeated, wrong, nothing = found.T
    assert best == pytest.approx(recipe.best, abs=1e-3)
    assert wrong == pytest.approx(recipe.wrong_scores)
    assert nothing == pytest.approx(0)
    if recipe.name != "geometry3k":  # where the last of several boxes counts
        assert repeated == pytest.approx(0)


def test_held_out_rows_are_scored_by_what_the_recipe_is_known_for(recipe: Recipe, recipe_model: Path) -> None:
    """The first reward of a held-out source is what evaluation reports as accuracy."""
    config = recipe.config(recipe_model)
    (source,) = config.data.eval
    first = (source.rewards or config.rewards)[0].model_copy(update={"weight": 1.0})
    said = [(s, text) for s in samples(config, source) for text in (recipe.right(s), recipe.wrong)]
    found = np.reshape(totals([first], *said), (-1, 2))
    assert found == pytest.approx(np.tile([1.0, 0.0], (len(found), 1)), abs=1e-3)


@pytest.mark.parametrize("recipe", ["vlm_r1_rec", "vlm_r1_ovd"], indirect=True)
def test_boxes_are_pixels_of_the_image_as_the_model_sees_it(recipe: Recipe, recipe_model: Path) -> None:
    """The answer's own numbers, copied, are pixels of the file: near, for small images, but not right."""
    config = recipe.config(recipe_model)
    say = OWN_PIXELS[recipe.name]
    given = [s for s in samples(config, config.data.train[0]) if s.answer != "None"]
    copied = totals(config.rewards, *((sample, say(sample, "original_pixels")) for sample in given))
    assert all(sample.media[0].size != sample.media[0].original_size for sample in given)
    assert all(1.0 < total < recipe.best - 0.01 for total in copied)


PROMPTS = {
    "chart_qa": r"How many bars does chart \d have\?\nAnswer the question with a single word\. First output "
    r"the thinking process in <think> </think> tags and then output the final answer in <answer> </answer> "
    r"tags\.",
    "clevr_count": r"How many items are there in the image\?  Output the thinking process in <think> "
    r"</think> and final answer \(number\) in <answer> </answer> tags\.",
    "document_qa": r"How many blocks does page \d have\?\nAnswer the question using a single word or phrase\."
    r" First output the thinking process .* in <answer> </answer> tags\.",
    "geometry3k": r"Find x\d\. You FIRST think about .* MUST BE put in \\boxed\{\}\.",
    "temporal_grounding": r'To accurately pinpoint the event "person number \d walks\." in the video, .* For '
    r'example: "12\.54 to 17\.83"\. First output the thinking process in .* in <answer> </answer> tags\.',
    "video_qa": r"How many seconds are in video \d\?\nOptions:\nA\. 2\nB\. 4\nC\. 9\nFirst output .* of the "
    r"option in\n<answer> </answer> tags\.|Question: How many seconds are in video \d\?\nOptions:\n\(A\) 2\n"
    r"\(B\) 3\n\(C\) 4\nOnly give the best option\. First output .* in <answer> </answer> tags\.",
    "vlm_r1_rec": r"Please provide the bounding box coordinate of the region this sentence describes: the "
    r"\w+ block\. First output the thinking process in <think> </think> tags and then output the final "
    r"answer in <answer> </answer> tags\. Output the final answer in JSON format\.",
    "vlm_r1_ovd": r"First thinks about [^\n]*</think><answer> answer here </answer>\nPlease carefully "
    r"check [^\n]*\n```json\n.*\n```\n\. If no targets .* \"None\"\.",
}


def test_the_prompt_is_the_published_one_after_the_medium(recipe: Recipe, recipe_model: Path) -> None:
    config = recipe.config(recipe_model)
    for source in (*config.data.train, *config.data.eval):
        for row in open_dataset(source, "data.train"):
            turn = row["messages"][-1]
            medium, text = turn["content"]
            assert turn["role"] == "user" and medium["type"] in ("image", "video")
            assert re.fullmatch(PROMPTS[recipe.name], text["text"], re.DOTALL), text["text"]


@pytest.mark.parametrize("recipe", ["vlm_r1_rec"], indirect=True)
def test_rec_is_the_same_from_lists_and_from_lines(recipe: Recipe, recipe_model: Path) -> None:
    """The annotations come in both forms; every set of the three is read."""
    (lines,) = recipe.config(recipe_model).data.train
    lists = lines.model_copy(update={"name": lines.name.removesuffix("l")})
    both = [[(row["messages"], row["answer"]) for row in open_dataset(s, "s")] for s in (lines, lists)]
    assert both[0] == both[1]
    assert len(both[0]) == 9


GEOMETRY_ANSWERS = [
    "3",
    r"\frac{12}{5}",
    r"3\sqrt{5}",
    "6.4",
    r"27\pi",
    "110",
    r"2\sqrt{21}",
    r"\frac{\sqrt{3}}{2}",
]
GEOMETRY_FORMS = [
    r"<think>a</think>\boxed{ANSWER}",
    "<think>\na\nb</think>\n\nSo it is $\\boxed{ANSWER}$.",
    r"<think>a \boxed{77}</think> \boxed{88} no, \boxed{ANSWER}",
    r"<think>a</think>\boxed{ANSWER} no, \boxed{88}",
    r"< think >a< / think >\boxed{ANSWER}",
    r"\boxed{ANSWER}",
    r"so <think>a</think>\boxed{ANSWER}",
    r"<think>a</think>\boxed{}",
    r"<think>a</think>ANSWER",
    r"<think>\boxed{ANSWER}</think>",
    r"<think>a</think>\boxed{ANSWER",
    "",
]


def easy_r1(response: str, answer: str) -> float:
    """EasyR1's math scorer for answers that are written as the reference is, or are plainly others.

    0.9 for the content of the last box, 0.1 if the response is think tags and a box after them, white space
    beside angle brackets and slashes taken out.
    """
    squeezed = re.sub(r"\s*([<>/])\s*", r"\1", response)
    boxes = re.findall(r"\\boxed\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}", squeezed)
    form = re.fullmatch(r"<think>.*</think>.*\\boxed\{.*\}.*", squeezed, re.DOTALL)
    unfinished = squeezed.rfind(r"\boxed{") > squeezed.rfind(r"\boxed{" + boxes[-1]) if boxes else False
    return 0.9 * bool(boxes and boxes[-1] == answer and not unfinished) + 0.1 * bool(form)


@pytest.mark.parametrize("recipe", ["geometry3k"], indirect=True)
def test_geometry3k_is_scored_as_easy_r1_scores_it(recipe: Recipe, recipe_model: Path) -> None:
    config = recipe.config(recipe_model)
    sample = samples(config, config.data.train[0])[0]
    said = [
        (replace(sample, answer=answer), form.replace("ANSWER", answer))
        for answer in GEOMETRY_ANSWERS
        for form in GEOMETRY_FORMS
    ]
    assert len(said) > 50
    assert totals(config.rewards, *said) == pytest.approx([easy_r1(text, each.answer) for each, text in said])
