"""Every shipped config fits the hardware that its first comment names, without a network."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hardware_claims import CONFIGS, HUB_CONFIGS, Claim, claims, planned

from vlrl.config import load_config

ROOT = Path(__file__).parents[2]
CLAIMS = [(file, claim) for file in HUB_CONFIGS for claim in claims(file)]


@pytest.mark.parametrize(
    ("file", "claim"),
    CLAIMS,
    ids=[f"{file.stem}-{claim.gigabytes}-{claim.host_gib}" for file, claim in CLAIMS],
)
def test_a_config_fits_what_its_comment_names(
    file: Path, claim: Claim, vlrl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of several answers is planned on exactly the GPUs that are named, with the host memory, if any."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    host = ("--host-memory-gib", claim.host_gib) if claim.host_gib else ()
    result = vlrl(
        *("plan", file, *claim.overrides, "--device", "cuda", "--json", "--text-tokens", 256),
        *("--memory-gib", claim.memory_gib, "--gpus-per-node", claim.num_gpus, *host),
    )
    assert result.code == 0, result.err
    found = result.json
    assert found["fits"] is True
    assert found["num_gpus"] == found["num_ranks"] == claim.num_gpus
    assert len(found["gpus"]) == claim.num_gpus
    if claim.host_gib is not None:
        needed = found["needed_host_bytes"] / 2**30
        assert 0.8 * claim.host_gib <= needed <= claim.host_gib, (
            "the comment asks for much more than it takes"
        )


@pytest.mark.parametrize("file", HUB_CONFIGS, ids=lambda file: file.stem)
def test_the_first_line_says_that_it_was_not_run_and_what_is_planned(
    file: Path, vlrl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures within a seventh of what `vlrl plan` predicts today, and a word on what is to be expected."""
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    config, (claim, *_), said = load_config(file), claims(file), planned(file)
    result = vlrl(
        *("plan", file, "--device", "cuda", "--json", "--text-tokens", 256),
        *("--memory-gib", claim.memory_gib, "--gpus-per-node", claim.num_gpus),
        *(("--method", "dpo") if config.preferences is not None else ()),
    )
    assert result.code == 0, result.err
    training = max(gpu["training"] for gpu in result.json["gpus"]) / 2**30
    assert said.training_gib == pytest.approx(training, rel=1 / 7)
    assert said.step_s == pytest.approx(result.json["step"]["total"], rel=1 / 7)
    assert said.all_s == pytest.approx(said.step_s * config.num_steps, rel=1 / 7)
    comment = " ".join(line.lstrip("# ") for line in file.read_text().splitlines() if line.startswith("#"))
    assert "what to expect" in comment or "What it reaches is not known." in comment


@pytest.mark.parametrize("file", HUB_CONFIGS, ids=lambda file: file.name)
def test_without_a_number_of_gpus_a_config_fits_some(
    file: Path, vlrl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    result = vlrl("plan", file, "--device", "cuda", "--memory-gib", 80, "--json")
    assert result.code == 0, result.err
    assert 1 <= result.json["num_gpus"] <= claims(file)[0].num_gpus


def test_every_config_of_a_hub_model_is_held() -> None:
    hub = [file for file in CONFIGS if not load_config(file).model.path.startswith("/")]
    assert hub == HUB_CONFIGS


def test_one_gpu_of_every_usual_size_is_enough_for_a_3b_and_a_7b_model() -> None:
    for size in ("3b", "7b"):
        found = claims(ROOT / "configs" / f"digit_sum_qwen2_5_vl_{size}.yaml")
        assert {claim.gigabytes for claim in found} == {24, 40, 80}
        assert {claim.num_gpus for claim in found} == {1}


ON_ONE_GPU = ("chart_qa.yaml", "document_qa.yaml")


def test_the_recipes_page_claims_what_its_configs_claim() -> None:
    page = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
    assert "**8 GPUs of 80 GB**" in page and "**one GPU of 80 GB**" in page
    for name in set(re.findall(r"configs/([a-z_0-9]+\.yaml)", page)):
        claim = claims(ROOT / "configs" / name)[0]
        assert (claim.num_gpus, claim.gigabytes) == (1 if name in ON_ONE_GPU else 8, 80), name


def test_the_readme_names_the_smallest_gpu_of_its_first_config() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    claim = claims(ROOT / "configs" / "digit_sum_qwen2_5_vl_3b.yaml")[0]
    assert f"{claim.num_gpus} GPU of {claim.gigabytes} GB" in page
