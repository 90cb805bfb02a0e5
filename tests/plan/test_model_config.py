"""Shapes of common models come with vlrl: counted exactly, found without the hub, and never waited for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import make_config

from vlrl.errors import ConfigError
from vlrl.plan.model_config import MODELS, find_model_config, hub_trouble, known_models, shipped
from vlrl.plan.shapes import read_shape

PUBLISHED = {  # all parameters, tied ones once, as the hub counts them in the models' safetensors
    "HuggingFaceTB/SmolVLM2-2.2B-Instruct": 2_246_784_880,
    "HuggingFaceTB/SmolVLM2-256M-Video-Instruct": 256_484_928,
    "HuggingFaceTB/SmolVLM2-500M-Video-Instruct": 507_482_304,
    "OpenGVLab/InternVL3-1B-hf": 938_193_024,
    "OpenGVLab/InternVL3-2B-hf": 2_088_957_440,
    "OpenGVLab/InternVL3-8B-hf": 7_944_373_760,
    "OpenGVLab/InternVL3-38B-hf": 38_388_164_992,
    "Qwen/Qwen2-VL-2B-Instruct": 2_208_985_600,
    "Qwen/Qwen2-VL-7B-Instruct": 8_291_375_616,
    "Qwen/Qwen2.5-VL-3B-Instruct": 3_754_622_976,
    "Qwen/Qwen2.5-VL-7B-Instruct": 8_292_166_656,
    "Qwen/Qwen2.5-VL-32B-Instruct": 33_452_718_336,
    "Qwen/Qwen2.5-VL-72B-Instruct": 73_410_777_344,
    "Qwen/Qwen3-VL-2B-Instruct": 2_127_532_032,
    "Qwen/Qwen3-VL-4B-Instruct": 4_437_815_808,
    "Qwen/Qwen3-VL-8B-Instruct": 8_767_123_696,
    "Qwen/Qwen3-VL-32B-Instruct": 33_357_390_064,
    "Qwen/Qwen3-VL-30B-A3B-Instruct": 31_070_754_032,
    "Qwen/Qwen3-VL-235B-A22B-Instruct": 235_670_022_896,
}
BILLIONS = {  # where only a rounded number was found
    "OpenGVLab/InternVL3-14B-hf": 15.1,
    "OpenGVLab/InternVL3-78B-hf": 78.4,
    "Qwen/Qwen2-VL-72B-Instruct": 73.4,
    "llava-hf/llava-onevision-qwen2-0.5b-ov-hf": 0.89,
    "llava-hf/llava-onevision-qwen2-7b-ov-hf": 8.03,
}


@pytest.fixture(autouse=True)
def _no_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An empty cache, and a hub that refuses connections."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))


def test_every_shipped_model_has_its_published_size() -> None:
    assert {*PUBLISHED, *BILLIONS} == set(known_models())


@pytest.mark.parametrize("name", [*PUBLISHED, *BILLIONS])
def test_parameters_are_the_published_ones(name: str) -> None:
    shape = read_shape(make_config(name), fetch=False)
    if name in PUBLISHED:
        assert shape.num_params == PUBLISHED[name]
    else:
        assert shape.num_params / 1e9 == pytest.approx(BILLIONS[name], rel=0.006)


def test_a_thinking_model_has_the_shapes_of_its_sibling() -> None:
    assert shipped("Qwen/Qwen3-VL-4B-Thinking") == shipped("Qwen/Qwen3-VL-4B-Instruct")
    assert shipped("Qwen/Qwen3-VL-4B-Instruct") is not None
    assert shipped("../models/Qwen/Qwen3-VL-4B-Instruct") is None
    assert shipped("Qwen/Qwen3-VL-5B-Thinking") is None


def test_a_folder_comes_before_what_is_shipped(tiny_model: Path) -> None:
    tree = json.loads((tiny_model / "config.json").read_text())
    assert find_model_config(str(tiny_model)).model_type == tree["model_type"]


def test_an_unknown_name_is_refused_at_once_when_the_hub_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    with pytest.raises(
        ConfigError, match=r"no config\.json found.*127\.0\.0\.1:9 cannot be reached"
    ) as caught:
        find_model_config("somebody/something")
    assert "Qwen/Qwen2.5-VL-3B-Instruct" in str(caught.value)
    with pytest.raises(ConfigError, match="the hub is not asked here"):
        find_model_config("somebody/something", fetch=False)


def test_offline_by_choice_is_said() -> None:
    assert hub_trouble({"HF_HUB_OFFLINE": "1"}) == "HF_HUB_OFFLINE is set"


def test_files_are_small_and_where_the_package_looks_for_them() -> None:
    assert sum(file.stat().st_size for file in MODELS.rglob("*.json")) < 64 * 1024
