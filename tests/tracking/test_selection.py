"""The best evaluation is known, also after a resume, and ends training by patience or at a target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from builders import make_config

from vlrl.errors import ConfigError
from vlrl.tracking.selection import BestWeights

GREEDY = "heldout/accuracy_greedy"


def selecting(**options: Any) -> BestWeights:
    heldout = {"train": {"name": "digit_sum"}, "eval": {"name": "digit_sum"}}
    return BestWeights(make_config(data=heldout, eval={"every": 5, **options}))


def noted(selection: BestWeights, *values: float, start: int = 0, name: str = GREEDY) -> list[str]:
    """Sentences about evaluations after 5, 10 and more updates; a step without one is in between."""
    told: list[str] = []
    for number, value in enumerate(values, start + 1):
        selection.note(5 * number - 1, {"reward/mean": 9.0}, told.append)
        selection.note(5 * number, {"reward/mean": 9.0, name: value}, told.append)
    return told


def test_the_best_is_the_first_of_equals() -> None:
    selection = selecting(keep_best=True)
    told = noted(selection, 0.2, 0.5, 0.5, 0.4)
    assert told == [
        f"after step {step}: {GREEDY} is {value}, the best so far" for step, value in ((5, 0.2), (10, 0.5))
    ]
    assert (selection.best_step, selection.num_since, selection.ending) == (10, 2, "")
    assert selection.summary()["selection"] == {
        "best": 0.5,
        "best_step": 10,
        "num_since": 2,
        "last_step": 20,
    }


def test_patience_counts_evaluations_that_were_no_better() -> None:
    selection = selecting(patience=2)
    noted(selection, 0.5, 0.4)
    assert selection.ending == ""
    noted(selection, float("nan"), start=2)
    assert "no better in 2 evaluations since (eval.patience)" in selection.ending
    assert selection.must_save(15) and not selection.must_save(16)


def test_a_target_ends_training_from_either_side() -> None:
    selection = selecting(stop_at=0.5)
    noted(selection, 0.49)
    assert selection.ending == ""
    noted(selection, 0.5, start=1)
    assert selection.ending == f"{GREEDY} reached eval.stop_at=0.5 after step 10"
    name = "heldout/preference/loss"
    falling = selecting(stop_at=0.5, lower_is_better=True, best_metric=name)
    noted(falling, 0.7, 0.6, 0.65, name=name)
    assert (falling.best_step, falling.ending) == (10, "")
    noted(falling, 0.4, start=3, name=name)
    assert falling.ending


def test_a_resumed_run_selects_as_one_that_was_not_stopped() -> None:
    values = (0.2, 0.5, 0.3, 0.4)
    whole, resumed = selecting(patience=2), selecting(patience=2)
    noted(whole, *values)
    first = selecting(patience=2)
    noted(first, *values[:3])
    resumed.restore(json.loads(json.dumps(first.state())))
    noted(resumed, values[3], start=3)
    assert (resumed.state(), resumed.ending) == (whole.state(), whole.ending)
    old = selecting(patience=2)
    old.restore(None)  # of a checkpoint that knows of no selection
    assert old.best is None


def test_best_is_a_link_to_the_model_of_its_checkpoint(tmp_path: Path) -> None:
    selection = selecting(keep_best=True)
    selection.link(tmp_path)
    assert not (tmp_path / "best").is_symlink()
    for values, start, step in (((0.2,), 0, 5), ((0.3, 0.1), 1, 10)):
        noted(selection, *values, start=start)
        assert selection.must_save(step) == (selection.last_step == step)
        (tmp_path / f"checkpoints/step_{step:06d}/model").mkdir(parents=True)
        selection.link(tmp_path)
        assert (tmp_path / "best").resolve() == tmp_path / f"checkpoints/step_{step:06d}/model"


def test_what_cannot_be_selected_is_told() -> None:
    with pytest.raises(ConfigError, match="every=0 makes none"):
        make_config(eval={"keep_best": True})
    with pytest.raises(ConfigError, match="have no effect without keep_best"):
        make_config(eval={"best_metric": "heldout/pass@2"})
    with pytest.raises(ConfigError, match=r"name them in data\.eval"):
        BestWeights(make_config(eval={"every": 5, "patience": 2}))
    with pytest.raises(ConfigError, match="has no such metric; there are heldout/accuracy_greedy"):
        noted(selecting(patience=1, best_metric="heldout/pass@9"), 0.5)
