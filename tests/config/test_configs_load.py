"""Every file in configs/ is valid, also with the overrides that the docs tell a reader to give."""

from __future__ import annotations

from pathlib import Path

import pytest

from vlrl.config import load_config
from vlrl.data.open import reader_kind
from vlrl.registry import available, resolve

CONFIGS = sorted((Path(__file__).parents[2] / "configs").rglob("*.yaml"))
QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


def test_there_are_configs() -> None:
    assert QUICKSTART in CONFIGS


@pytest.mark.parametrize("file", CONFIGS, ids=lambda file: file.name)
def test_it_loads_and_names_plugins_that_exist(file: Path) -> None:
    config = load_config(file)
    for source in (*config.data.train, *config.data.eval):
        known = ".py:" in source.name or source.name in available("datasets")
        assert resolve("datasets", source.name if known else reader_kind(source.name))
    for reward in (*config.rewards, *(each for source in config.data.eval for each in source.rewards)):
        assert callable(resolve("rewards", reward.name))


@pytest.mark.parametrize("more", [[], ["model.dtype=bfloat16"]])
def test_the_quickstart_takes_a_hub_model(more: list[str]) -> None:
    config = load_config(QUICKSTART, ["model.path=Qwen/Qwen2.5-VL-3B-Instruct", *more])
    assert config.model.path == "Qwen/Qwen2.5-VL-3B-Instruct"
    assert config.parity_tolerance == (0.5 if more else 1e-3)


@pytest.mark.parametrize("name", ["gui_emu", "gui_grounding", "gui_x11"])
def test_the_first_row_of_a_gui_config_can_be_had_or_its_screen_made(name: str) -> None:
    """Options that an environment refuses are not options; gui/x11 boots nothing before its first reset."""
    config = load_config(CONFIGS[0].parent / f"{name}.yaml")
    (source,) = config.data.train
    dataset = resolve("datasets", source.name)(**source.options)
    assert len(dataset) == 16384
    if name != "gui_x11":
        assert dataset[0]["messages"][0]["role"] == "system"
