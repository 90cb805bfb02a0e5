"""Models with a scalar head: loaded of any family, written, and packed, with transformers' own scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import make_config, open_tiny
from safetensors.torch import load_file

from vlrl.config.learning.preferences import PreferencesConfig
from vlrl.envs.visual.questions.digit_sum import DigitSum
from vlrl.errors import ConfigError
from vlrl.model.hf_names import save_as_published
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.model.scored.files import load_scored, save_scored
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.preferences import preference_groups
from vlrl.trainer.model import load_model

INSIDE = ("qwen2_vl", "qwen2_5_vl", "llava_onevision", "internvl")
OUTSIDE = ("qwen3_vl", "qwen3_vl_moe", "smolvlm")
OPTIONS = PreferencesConfig(loss="bradley_terry")  # type: ignore[arg-type]


def loaded(folder: Path, seed: int = 0) -> Any:
    return load_scored(str(folder), seed, dtype=torch.float32)


@pytest.mark.parametrize("family", [*INSIDE, *OUTSIDE])
def test_every_family_is_written_as_published_but_for_its_head(
    family: str, tiny_family: Callable[[str], Path], tmp_path: Path
) -> None:
    published = load_file(tiny_family(family) / "model.safetensors")
    model = loaded(tiny_family(family))
    save_as_published(model)
    save_scored(model, str(tmp_path), model.state_dict())
    written = load_file(tmp_path / "model.safetensors")
    head = "language_model.score.weight" if family in INSIDE else "score.weight"
    assert written.keys() == {name for name in published if "lm_head" not in name} | {head}
    assert all(torch.equal(written[name], published[name]) for name in written.keys() - {head})
    again = loaded(tmp_path, seed=1)  # whose head is there, and is not sampled
    assert torch.equal(again.score.weight, model.score.weight)
    assert type(again).__name__.endswith("ForSequenceClassification") and again.config.num_labels == 1


def test_a_new_head_follows_the_seed(tiny_model: Path) -> None:
    first, same, other = (loaded(tiny_model, seed).score.weight for seed in (0, 0, 1))
    assert torch.equal(first, same) and not torch.equal(first, other)
    assert float(first.detach().std()) == pytest.approx(128**-0.5, rel=0.3)


def test_adapters_and_freezing_leave_the_head_to_train(tiny_model: Path) -> None:
    preferences = {"preferences": {"loss": "bradley_terry"}}
    adapted = load_model(
        make_config(tiny_model, lora={"rank": 4, "targets": ["language_layers"]}, **preferences)
    )
    trained = {name for name, parameter in adapted.named_parameters() if parameter.requires_grad}
    assert "score.weight" in trained
    assert all(".lora_" in name for name in trained - {"score.weight"}) and len(trained) > 1
    parts = ["vision_tower", "projector", "embeddings", "language_layers"]
    config = make_config(tiny_model, **preferences)
    frozen = load_model(
        config.model_copy(update={"model": config.model.model_copy(update={"freeze": parts})})
    )
    assert [name for name, p in frozen.named_parameters() if p.requires_grad] == ["score.weight"]


def test_code_of_a_models_own_is_refused(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from transformers.models.auto import modeling_auto

    monkeypatch.setattr(modeling_auto, "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING", {})
    with pytest.raises(ConfigError, match="comes with code of its own"):
        loaded(tiny_model)


def test_packed_scores_and_gradients_are_those_of_the_classifier(tiny_model: Path) -> None:
    """Pairs in prefix trees against one forward pass of transformers for each whole conversation."""
    processor, model = open_tiny(tiny_model), loaded(tiny_model).eval()
    samples = [
        processor.sample({**DigitSum()[i], "rejected": f"<answer>{i} or so</answer>"}) for i in range(3)
    ]
    groups = preference_groups(samples, processor, OPTIONS)
    plain = []
    for sample in samples:
        for said in (sample.target, sample.rejected):
            turns = [*sample.messages, {"role": "assistant", "content": said}]
            inputs = processor._hf(
                text=[processor._hf.apply_chat_template(turns, tokenize=False)],
                images=[medium.frames[0] for medium in sample.media],
                do_resize=False,
                return_tensors="pt",
            )
            plain.append(model(**inputs).logits.squeeze())
    expected = torch.stack(plain)
    gradients = torch.autograd.grad(expected.square().sum(), list(model.parameters()), allow_unused=True)
    wrapped = TreeLogprobs(model, temperature=1.0, banned_token_ids=[])
    [[batch]] = pack(groups, processor.pixels, PackOptions.of(make_config(preferences={})))
    scores, entropy = wrapped(DeviceBatch.of(batch, torch.device("cpu")))
    assert torch.allclose(scores, expected, atol=1e-5) and not entropy.any()
    assert len({round(float(score), 4) for score in scores}) == len(scores)
    found = torch.autograd.grad(scores.square().sum(), list(model.parameters()), allow_unused=True)
    for ours, theirs in zip(found, gradients, strict=True):
        if theirs is not None:
            assert torch.allclose(ours, theirs, atol=1e-4 * float(theirs.abs().max()) + 1e-6)
