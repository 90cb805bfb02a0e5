"""Options of samplers that nothing would read are refused, with both keys and the remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import make_config

from vlrl.config import Config, load_config
from vlrl.errors import ConfigError


def config(sampler: Any) -> Config:
    return make_config(data={"train": {"name": "digit_sum", "sampler": sampler}})


def test_a_name_alone_is_enough_and_overrides_reach_into_it(tmp_path: Path) -> None:
    assert config("learnability").data.train[0].sampler.is_adaptive
    path = tmp_path / "run.yaml"
    path.write_text(
        "model: {path: m}\nrewards: answer_exact\ndata: {train: {name: digit_sum, sampler: learnability}}\n"
    )
    loaded = load_config(path, ["data.train.sampler.options.explore=0.3"])
    assert loaded.data.train[0].sampler.options == {"explore": 0.3}


def test_held_out_rows_have_no_sampler() -> None:
    with pytest.raises(ConfigError, match=r"eval\.0\.sampler\.name=hardness has no effect"):
        make_config(data={"train": "digit_sum", "eval": {"name": "digit_sum", "sampler": "hardness"}})


@pytest.mark.parametrize(
    ("sampler", "named"),
    [
        ({"half_life": 2.0}, "half_life=2.0 has no effect with name=uniform.*set name=learnability"),
        ({"start_rates": "x.rates"}, "start_rates=.*x.rates has no effect with name=uniform"),
        ({"options": {"low": 0.1}}, "options=.* has no effect with name=uniform"),
        (
            {"name": "band", "adaptive": False},
            "adaptive=false keeps the pass rates of start_rates.*vlrl data rate",
        ),
        (
            {"name": "band", "adaptive": False, "start_rates": "x", "pool_by": "level"},
            "pool_by=level has no effect with adaptive=false.*set adaptive=true",
        ),
        ({"name": "band", "options": {"lo": 0.1}}, "takes no option 'lo'.*did you mean 'low'"),
        ({"name": "learnable"}, "no sampler is named 'learnable'; did you mean 'learnability'"),
        ({"name": "learnability", "half_life": 0}, "half_life"),
    ],
)
def test_what_nothing_reads_is_refused(sampler: Any, named: str) -> None:
    with pytest.raises(ConfigError, match=f"(?s)data.train.*sampler.*{named}"):
        config(sampler)
