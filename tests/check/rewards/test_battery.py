"""The battery itself: what is called no answer holds none, and what is called wrong is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from builders import make_sample
from hypothesis import given
from hypothesis import strategies as st

from vlrl.check.rewards.battery import cases_of
from vlrl.check.rewards.forms import TARGET, bodies, candidates, dressed, plainly_wrong, put
from vlrl.check.rewards.samples import built_in_sets
from vlrl.types import Sample

FORM = ("text", "<think></think><answer>{}</answer>")


@pytest.mark.parametrize("name", sorted(built_in_sets()))
def test_built_in_samples_have_answers_that_differ(name: str) -> None:
    samples = built_in_sets()[name]
    assert len({sample.id for sample in samples}) == len(samples)
    for sample in samples:
        assert any(plainly_wrong(other.answer, sample.answer) for other in samples)
        assert not plainly_wrong(sample.answer, sample.answer)


def test_every_sample_gets_every_kind() -> None:
    samples = built_in_sets()["text"][:3]
    cases = cases_of(samples[0], samples, FORM, seed=0)
    assert {case.kind for case in cases} == {"empty", "reference", "variant", "wrong", "hollow"}
    names = [case.name for case in cases]
    assert len(set(names)) == len(names)
    assert max(len(case.text) for case in cases) > 5_000_000
    assert all(len(case.text) < 500_000 for case in cases if not case.heavy)
    texts = {case.name: case.text for case in cases}
    assert texts["the right answer"] == "<think></think><answer>silver clock</answer>"
    assert texts["right 1,000 times, spaces"].count("silver clock") == 1000
    for sample in samples:
        assert str(sample.answer) in texts["all answers at once, or"]


def test_fixed_cases_are_the_same_for_every_sample() -> None:
    samples = built_in_sets()["number"]
    first, second = (
        {c.name: c.text for c in cases_of(s, samples, FORM, seed=0) if c.fixed} for s in samples[:2]
    )
    assert first == second
    assert cases_of(samples[0], samples, FORM, 0) == cases_of(samples[0], samples, FORM, 0)
    assert cases_of(samples[0], samples, FORM, 0) != cases_of(samples[0], samples, FORM, 1)


def test_answers_that_are_lists_are_poured_into_one() -> None:
    samples = built_in_sets()["boxes"]
    cases = cases_of(samples[0], samples, ("JSON", "{}"), seed=0)
    (everything,) = [case for case in cases if case.name == "all answers at once, list"]
    assert len(json.loads(everything.text)) == 2 * len(samples)
    assert everything.num_hedged == len(samples)


@pytest.mark.parametrize(
    ("one", "other", "wrong"),
    [
        ("8", "8.0", False),
        (8, "8.2", False),
        ("8", "80", True),
        ("cat", "Cat!", False),
        ("cat", "a cat", False),
        ("cat", "dog", True),
        (["two", "2"], "2", False),
        (["two", "pair"], "five", True),
        ([0, 0, 10, 10], [5, 5, 20, 20], False),
        ([0, 0, 10, 10], [11, 0, 20, 10], True),
        ([0.0, 5.0], [4.0, 9.0], False),
        ([0.0, 5.0], [6.0, 9.0], True),
        ({"action": "click", "bbox": [0, 0, 9, 9]}, {"action": "tap", "bbox": [50, 50, 60, 60]}, False),
        ({"action": "click", "bbox": [0, 0, 9, 9]}, {"action": "type", "input_text": "x"}, True),
    ],
)
def test_plainly_wrong_leaves_no_room_for_doubt(one: Any, other: Any, wrong: bool) -> None:
    assert plainly_wrong(one, other) is plainly_wrong(other, one) is wrong


@given(st.text(min_size=1), st.text())
def test_a_body_comes_out_of_its_form_unchanged(body: str, around: str) -> None:
    escaped = around.replace("{", "{{").replace("}", "}}")
    assert put(escaped + "{}", body) == around + body
    assert put(FORM[1], body) == f"<think></think><answer>{body}</answer>"


@given(st.integers(0, 999))
def test_a_targets_answer_can_be_exchanged(number: int) -> None:
    target = f'<think>{{"a": "b"}}</think><answer>{number}</answer>'
    sample: Sample = make_sample(answer=str(number), target=target)
    assert ((TARGET, "{}"), target) in list(candidates(sample))
    found = dressed((TARGET, "{}"), sample)
    assert found is not None
    assert put(*found) == target
    assert put(found[0], "x") == '<think>{"a": "b"}</think><answer>x</answer>'


def test_a_structured_answer_has_the_forms_models_write() -> None:
    assert bodies([10, 20, 30, 60]) == {"centre": "[20.0, 40.0]", "JSON": "[10, 20, 30, 60]"}
    assert bodies(True)["yes or no"] == "yes"
    assert json.loads(bodies({"action": "click", "bbox": [0, 0, 4, 8]})["action at the centre"]) == {
        "action": "click",
        "bbox": [2.0, 4.0],
    }
