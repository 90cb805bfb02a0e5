"""Every built-in reward passes the test that a stranger's is put to, or is named here with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vlrl.check.rewards.checks import run_checks
from vlrl.check.rewards.samples import built_in_sets
from vlrl.check.rewards.trial import run_trial
from vlrl.coordinates import Canvas
from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.codecs.codec import View
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.errors import ConfigError
from vlrl.registry import BUILT_IN
from vlrl.scoring.functions import find_reward
from vlrl.types import Sample

OPTIONS: dict[str, dict[str, Any]] = {
    "math": {"limit_s": 0.3},
    "soft_overlong": {"max_tokens": 200, "buffer": 50},
    "cosine_length": {"max_tokens": 1024, "accuracy": "answer_exact"},
    "cosine_length_media": {"max_tokens": 1024, "accuracy": "answer_exact"},
    "keypoint_oks": {"sigmas": 0.05},
    "pattern_format": {"pattern": r"<think>[^<]*</think><answer>[^<]+</answer>"},
}
KINDS = {
    "soft_overlong": "penalty",
    "repetition_penalty": "penalty",
    "think_answer_format": "form",
    "tag_format": "form",
    "pattern_format": "form",
}
SAMPLES = {
    "multiple_choice": "choice",
    "numeric": "number",
    "math": "number",
    "yes_no": "yes or no",
    "box_iou": "box",
    "detection_f1": "boxes",
    "polygon_iou": "polygon",
    "click_in_box": "action",
    "temporal_iou": "span",
    "event_order": "order",
    "token_f1": "text",
}
# A long wrong text costs less than a short one, by the definition in arXiv 2502.03373: so nonsense at length
# is worth half of what a right answer is. It is meant to stand beside an accuracy, which pays the other half.
PAYS_FOR_LENGTH = {"cosine_length", "cosine_length_media"}
# What these say is a served model's: test_judge.py tries one of them on a server of its own.
NEED_A_SERVER = {"judge", "judge_pairwise", "rubric", "classifier"}
# What these say is the environment's; `vlrl env check` asks it.
NEED_AN_EPISODE = {"episode_return", "success"}
# With a codec these read its grammar, which no form of the battery is: their samples bring it as targets.
IN_A_CODEC = ("click_in_box", "click_distance")
# What these compare are completions of a prompt with each other, turns, thoughts, or images: no form of the
# battery is one. tests/rewards has batteries of their own.
OF_GROUPS = {"group_diversity", "group_length", "group_rank"}
OF_STEPS = {"turn_process", "step_process"}
OF_IMAGES = {"image_ssim", "image_clip", "chart_code", "page_code"}
ALIASES = {"vlm_r1_rec", "vlm_r1_ovd"}
# Official scorers take the answer out of whatever surrounds it: what they let pass is their definition, and
# tests/rewards/benchmarks holds them to it.
OF_BENCHMARKS = {
    *("answer_contained", "mathvista", "mathverse", "first_box_accuracy", "nms_ap"),
    *("option_letter", "mvbench", "temporal_grounding", "click_in_region", "android_control", "aitw"),
}

NOT_TRIED = NEED_A_SERVER | NEED_AN_EPISODE | OF_GROUPS | OF_STEPS | OF_IMAGES | ALIASES | OF_BENCHMARKS
FIRST = {"answer_exact", "box_iou", "cosine_length", "math", "tag_format"}
"""One of every kind, for `make test`."""


def plain_clicks() -> list[Sample]:
    """The built-in clicks, each with the text of the plain codec that does it."""
    found = []
    for sample in built_in_sets()["action"]:
        if sample.answer["action"] == "click":
            x0, y0, x1, y1 = sample.answer["bbox"]
            view = View(Canvas.of(sample.media[0]), (0, 0))
            target = open_codec("plain").format(Click(((x0 + x1) // 2, (y0 + y1) // 2)), view)
            found.append(replace(sample, target=target))
    return found


def own_samples(name: str) -> list[Sample] | None:
    """Samples of rewards whose kind of answer is not among the built-in sets; None for the others."""
    sets = built_in_sets()
    polygons, boxes = sets["polygon"], [sample.answer for sample in sets["box"]]

    def answered(*answers: Any) -> list[Sample]:
        return [replace(polygons[i], id=f"{name} {i}", answer=answer) for i, answer in enumerate(answers)]

    def told(sample: Sample, answer: str) -> Sample:
        return replace(sample, target=f"<think></think><answer>{answer}</answer>")

    if name == "point_in_mask":
        return [told(s, f"({s.answer[0][0] + 50},{s.answer[0][1] + 20})") for s in polygons]
    if name == "keypoint_oks":
        joints = ({"nose": [a, b], "left": [c, b], "tail": [a, d]} for a, b, c, d in boxes)
        return answered(*joints)
    if name == "teds":
        rows = "<tr><td>oak {0}</td><td>silver {0}</td></tr>"
        return answered(*(f"<table>{rows.format(i) * (2 + i % 3)}</table>" for i in range(len(polygons))))
    if name == "track_iou":
        return answered(*({str(k): [a + k, b, c + k, d] for k in range(4)} for a, b, c, d in boxes))
    if name == "depth_order":
        orders = [sample.answer for sample in sets["order"]]
        depths = answered(*(dict(zip(order, (1.0, 2.0, 3.5, 7.0), strict=True)) for order in orders))
        return [told(s, ", ".join(order)) for s, order in zip(depths, orders, strict=True)]
    return None


@pytest.mark.parametrize("name", IN_A_CODEC)
def test_it_is_sound_in_a_codec(name: str) -> None:
    trial = run_trial(
        find_reward(name, {"codec": "plain"}), plain_clicks(), "", timeout_s=10, seed=1, limit=4
    )
    assert not [check.name for check in run_checks(trial) if check.status == "fail"]
    assert trial.profile == "answer"


@pytest.mark.parametrize(
    "name",
    [
        name if name in FIRST else pytest.param(name, marks=pytest.mark.slow(together=True))
        for name in sorted(BUILT_IN["rewards"].keys() - NOT_TRIED)
    ],
)
def test_it_is_sound(name: str) -> None:
    function = find_reward(name, OPTIONS.get(name, {}))
    trial = run_trial(function, own_samples(name), "", timeout_s=10, seed=1, limit=4)
    failed = {check.name: check for check in run_checks(trial) if check.status == "fail"}
    if name in PAYS_FOR_LENGTH:
        assert set(failed) == {"no answer"}, failed
        assert {finding.why for finding in failed["no answer"].findings} <= {
            f"earns {share}% of what the right answer does" for share in range(11, 51)
        }
    else:
        assert not failed
    assert trial.profile == KINDS.get(name, "answer")
    if name in SAMPLES:
        assert trial.data == f"built-in samples: {SAMPLES[name]}"


@pytest.mark.parametrize("name", sorted(NEED_AN_EPISODE))
def test_what_an_environment_says_is_not_tried_on_texts(name: str) -> None:
    with pytest.raises(ConfigError, match=r"looks at the episode .*vlrl env check"):
        run_trial(find_reward(name), None, "", timeout_s=10, seed=1, limit=4)


def test_aliases_are_what_they_say() -> None:
    targets = [target for name, target in BUILT_IN["rewards"].items() if name not in ALIASES]
    assert len(targets) == len(set(targets))
    assert {BUILT_IN["rewards"][name] for name in ALIASES} <= set(targets)
