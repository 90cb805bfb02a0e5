"""Who does not look scores near chance: guesses, one answer always, and the usual answer to such words."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from vlrl.environment.open import open_env
from vlrl.envs.visual.question import Question, QuestionEnv
from vlrl.registry import BUILT_IN

NUM_SEEDS = 300
CHANCE: dict[str, tuple[float, ...]] = {
    "visual/counting": (0.25, 0.37, 0.4, 0.38, 0.33),
    "visual/referring": (0.02, 0.02, 0.02, 0.02, 0.02),
    "visual/detection": (0.01, 0.01, 0.01, 0.01, 0.01),
    "visual/spatial": (0.5, 0.38, 0.25, 0.22, 0.23),
    "visual/clocks": (0.09, 0.03, 0.01, 0.01, 0.01),
    "visual/gauges": (0.12, 0.07, 0.05, 0.04, 0.04),
    "visual/geometry": (0.05, 0.08, 0.05, 0.05, 0.06),
    "visual/charts": (0.2, 0.15, 0.12, 0.12, 0.1),
    "visual/tables": (0.02, 0.13, 0.09, 0.1, 0.12),
    "visual/event_order": (1 / 2, 1 / 3, 1 / 6, 1 / 24, 1 / 120),
    "visual/count_over_time": (1 / 3, 1 / 4, 1 / 5, 1 / 6, 1 / 8),
    "visual/tracking": (1 / 3, 1 / 3, 1 / 4, 1 / 4, 1 / 5),
}
"""What an agent that sees nothing scores, a level."""
SLACK = 0.1
"""Four standard errors and a little of what wording gives away."""

NAMES = sorted(
    name
    for name in BUILT_IN["envs"]
    if name.startswith("visual/") and isinstance(open_env(name, {}), QuestionEnv)
)


def questions(name: str, level: int) -> list[Question]:
    env: Any = open_env(name, {"image_size": 96})
    found = []
    for seed in range(NUM_SEEDS):
        env.reset({"level": level}, seed)
        found.append(env.question)
    return found


def wording(question: Question) -> str:
    return " ".join(question.text.split()[:3])


@pytest.mark.parametrize("name", NAMES)
def test_who_does_not_look_scores_near_chance(name: str) -> None:
    env: Any = open_env(name, {})
    for level in range(1, env.num_levels + 1):
        rng = np.random.default_rng(level)
        asked = questions(name, level)
        known, fresh = asked[: NUM_SEEDS // 2], asked[NUM_SEEDS // 2 :]
        usual: dict[str, Counter[str]] = defaultdict(Counter)
        for question in known:
            usual[wording(question)][question.answer.text] += 1
        always = Counter(question.answer.text for question in known).most_common(1)[0][0]
        nulls = {
            "guesses": [question.answer.grade(question.answer.guess(rng)) for question in asked],
            "one answer": [question.answer.grade(always) for question in fresh],
            "the usual answer": [
                question.answer.grade((usual[wording(question)].most_common(1) or [(always, 1)])[0][0])
                for question in fresh
            ],
        }
        bound = CHANCE.get(name, (0.5,) * env.num_levels)[level - 1] + SLACK
        for null, scores in nulls.items():
            mean = float(np.mean([score or 0.0 for score in scores]))
            assert mean <= bound, f"{name} level {level}: {null} score {mean:.3f}"
