"""Rewards on one step of a GUI agent: the action it writes against the action of the sample's answer.

The option `codec` says which grammar the model writes in. "any" reads the forms of `vlrl.parsing.actions`;
another name is a codec of docs/gui_actions.md. What it cannot read, and more than one action, scores 0. The
answer is an action in common words, as a mapping or as text: `action`, then a place (`bbox`, `gt_bbox`,
`coordinate`, `point`: four numbers are a box, two a point) and arguments such as `input_text` or `direction`.
What it does not give is not compared. The options that all of them share are those of
`vlrl.rewards.agents.steps`.

    radius    share of the image's diagonal within which a click counts where the answer's place is a point

Every one of them raises ValueError for a sample whose answer is missing, unreadable or off the image, and
ConfigError for an option out of range.
"""

from __future__ import annotations

from typing import Literal

from vlrl.errors import ConfigError
from vlrl.rewards.agents.steps import Step, agreement, complete, hits, nearness, says, targets
from vlrl.rewards.agents.steps import step as read_step
from vlrl.rewards.text.overlap import token_f1
from vlrl.scoring.author import prepared_by, reward


@reward(range=(0.0, 1.0))
@prepared_by(read_step)
def action_type(step: Step) -> float:
    """1 if the action written is of the answer's type, else 0; what it does where is not compared.

    Range {0, 1}. Source: the type accuracy of AndroidControl (Li et al. 2024, arXiv 2406.03679). A model that
    always writes the commonest action scores its share: use it beside a reward on arguments.
    """
    said, true = step.written, step.true
    return float(said is not None and said.kind == true.kind)


@reward(range=(0.0, 1.0))
@prepared_by(read_step)
def click_in_box(step: Step, *, radius: float = 0.05) -> float:
    """1 if the action is of the answer's type and at its place: in the box, edge included, or near the point.

    Range {0, 1}. Source: ScreenSpot's click accuracy (arXiv 2401.10935) with the type. Where the answer's
    action has no place, such as typing, the type alone decides.
    """
    frames = step.frames(radius)
    said, true = step.written, step.true
    places = targets(true, frames)
    return float(said is not None and said.kind == true.kind and hits(said, places, frames, radius))


@reward(range=(0.0, 1.0))
@prepared_by(read_step)
def click_distance(step: Step, *, sigma: float = 0.05) -> float:
    """exp(−d / sigma) for an action of the answer's type, else 0.

    d is the distance from the answer's place over the image's diagonal: 0 anywhere in a box, and for an
    answer without a place; of a drag the mean of both ends. Range [0, 1]. Ours: a near miss scores more than
    a far one, where `click_in_box` gives 0 to both.

    Raises:
        ConfigError: unless sigma > 0.
    """
    frames = step.frames(sigma)
    said, true = step.written, step.true
    return nearness(said, true, targets(true, frames), frames, sigma)


@reward(range=(0.0, 1.0))
@prepared_by(read_step)
def argument_match(step: Step, *, measure: Literal["exact", "similarity"] = "exact") -> float:
    """Mean agreement of the answer's arguments (text, keys, direction, …), for an action of its type, else 0.

    exact: the share that is the same; text letter by letter, the others without regard to case. similarity:
    text counts 1 − edits / length (Levenshtein) instead. Range [0, 1]. Where the answer gives no argument,
    the type alone decides. Typing "e" for "headphones" scores 0 and 0.1.

    Raises:
        ConfigError: for another measure.
    """
    if measure not in ("exact", "similarity"):
        raise ConfigError(f"measure={measure!r}; give exact or similarity")
    said, true = step.written, step.true
    if said is None or said.kind != true.kind:
        return 0.0
    agreements = [agreement(said, name, value, measure) for name, value in true.arguments.items()]
    return sum(agreements) / len(agreements) if agreements else 1.0


@reward(range=(0.0, 1.0))
@prepared_by(read_step)
def step_match(step: Step, *, radius: float = 0.05, min_similarity: float = 1.0) -> float:
    """1 if the whole step is right: its type, its place, and every argument that the answer gives; else 0.

    Range {0, 1}. Source: step accuracy of AndroidControl. Text is right if its normalised edit similarity is
    at least `min_similarity`; 1 is letter by letter.

    Raises:
        ConfigError: unless 0 < min_similarity ≤ 1.
    """
    if not 0 < min_similarity <= 1:
        raise ConfigError(f"min_similarity={min_similarity} must lie above 0 and not above 1")
    frames = step.frames(radius)
    said, true = step.written, step.true
    places = targets(true, frames)
    if said is None or said.kind != true.kind or not hits(said, places, frames, radius):
        return 0.0
    found = [agreement(said, name, value, "similarity") for name, value in true.arguments.items()]
    return float(all(one >= min_similarity for one in found))


@reward(range=(0.0, 1.0))
@prepared_by(read_step)
def gui_r1(step: Step, *, radius: float = 0.05) -> dict[str, float]:
    """0.8 · accuracy + 0.2 · format, the two summands under names of their own.

    accuracy  1 if the type is right and so is what goes with it: a place (`click_in_box`), a text (the F1 of
              its words, as multisets, at least 0.5), any other argument exactly
    format    1 if the text is one action in a form that is read, with the place, text or direction it needs

    Range [0, 1]. Source: GUI-R1 (arXiv 2504.10458, Eqs. 3–6; r1gui.py). docs/rewards.md lists its holes,
    which are closed here. Any well formed action scores 0.2, whatever it does.
    """
    frames = step.frames(radius)
    said, true = step.written, step.true
    places = targets(true, frames)
    if said is None:
        return {"gui_r1_accuracy": 0.0, "gui_r1_format": 0.0}
    right = said.kind == true.kind and hits(said, places, frames, radius) and says(said, true, _enough_words)
    return {"gui_r1_accuracy": 0.8 * right, "gui_r1_format": 0.2 * complete(said)}


@reward(range=(0.0, 3.0))
@prepared_by(read_step)
def ui_r1(step: Step, *, radius: float = 0.05) -> dict[str, float]:
    """The sum action + coordinate + format, three terms of 0 or 1 under names of their own.

    action      the type is right
    coordinate  the type is right and so is the place, or every argument where the action has no place
    format      the text is one action in a form that is read

    Range [0, 3]. Source: UI-R1 (arXiv 2503.21620, 3.2; grpo_json_action_coord.py). docs/rewards.md lists the
    differences. Any well formed action scores 1, whatever it does.
    """
    frames = step.frames(radius)
    said, true = step.written, step.true
    places = targets(true, frames)
    same = said is not None and said.kind == true.kind
    there = said is not None and same and hits(said, places, frames, radius) and says(said, true, str.__eq__)
    return {
        "ui_r1_action": float(same),
        "ui_r1_coordinate": float(there),
        "ui_r1_format": float(said is not None),
    }


def _enough_words(written: str, value: str) -> bool:
    return token_f1(written, value, part="whole") >= 0.5
