"""Every built-in reward passes the test that a stranger's is put to, or is named here with the reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vlrl.envs.gui.actions import Click
from vlrl.envs.gui.codecs.codec import View
from vlrl.envs.gui.codecs.open import open_codec
from vlrl.errors import ConfigError
from vlrl.processors.coordinates import Canvas
from vlrl.registry import BUILT_IN
from vlrl.reward_check.checks import run_checks
from vlrl.reward_check.samples import built_in_sets
from vlrl.reward_check.trial import run_trial
from vlrl.rewards.scoring.functions import find_reward
from vlrl.types import Sample

OPTIONS: dict[str, dict[str, Any]] = {
    "math": {"limit_s": 0.3},
    "soft_overlong": {"max_tokens": 200, "buffer": 50},
    "cosine_length": {"max_tokens": 1024, "accuracy": "answer_exact"},
    "cosine_length_media": {"max_tokens": 1024, "accuracy": "answer_exact"},
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
NEED_A_SERVER = {"judge", "judge_pairwise"}
# What these say is the environment's; `vlrl env check` asks it.
NEED_AN_EPISODE = {"episode_return", "success"}
# What these read is a codec's grammar, which no form of the battery is: their samples bring it as targets.
IN_A_CODEC = {"codec_click_in_box", "codec_click_distance"}
ALIASES = {"vlm_r1_rec", "vlm_r1_ovd"}

NOT_TRIED = NEED_A_SERVER | NEED_AN_EPISODE | ALIASES


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


@pytest.mark.parametrize("name", sorted(BUILT_IN["rewards"].keys() - NOT_TRIED))
def test_it_is_sound(name: str) -> None:
    function = find_reward(name, OPTIONS.get(name, {}))
    samples = plain_clicks() if name in IN_A_CODEC else None
    trial = run_trial(function, samples, "", timeout_s=10, seed=1, limit=4)
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
