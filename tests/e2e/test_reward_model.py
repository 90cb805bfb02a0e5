"""A reward model in whole runs: learned of pairs with images, exported, and used as a reward."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, open_tiny
from classifier_server import serving
from whole_runs import metrics, run

from vlrl import grpo
from vlrl.config import Config
from vlrl.errors import Interrupted
from vlrl.preferences import train_reward_model
from vlrl.rewards.judge.classifier import classifier
from vlrl.tracking.metrics import METRICS
from vlrl.types import Sample

pytestmark = pytest.mark.slow(together=True)

COLOURS = '''
import numpy as np
from PIL import Image

COLOURS = {"red": (200, 40, 40), "blue": (40, 40, 200)}


class Colours:
    """A noisy image of one of two colours. The chosen completion names it, the rejected one the other."""

    def __init__(self, split="train", num_rows=256):
        self.offset, self.num_rows = (0 if split == "train" else 10_000), num_rows

    def __len__(self):
        return self.num_rows

    def __getitem__(self, index):
        random = np.random.default_rng(self.offset + index)
        names = random.permutation(list(COLOURS))
        pixels = np.clip(np.array(COLOURS[names[0]]) + random.normal(0, 30, (56, 56, 3)), 0, 255)
        image = {"type": "image", "image": Image.fromarray(pixels.astype(np.uint8))}
        asked = [{"role": "user", "content": [image, {"type": "text", "text": "Which colour?"}]}]
        return {"id": f"{self.offset + index}", "prompt": asked, "chosen": names[0], "rejected": names[1]}
'''
NUM_HELDOUT = 16


@pytest.fixture(scope="module")
def new_run(tiny_model: Path, local_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A config by name, with sections of its own."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / "colours.py").write_text(COLOURS)

    def make(name: str, seed: int = 0, **sections: Any) -> Config:
        source = {"name": f"{folder}/colours.py:Colours"}
        defaults: dict[str, Any] = {
            "run": {"name": name, "dir": str(folder), "seed": seed},
            "data": {
                "train": source,
                "eval": {**source, "options": {"split": "heldout", "num_rows": NUM_HELDOUT}},
            },
            "num_steps": 40,
            "optim": {"lr": 1e-3, "schedule": "constant", "warmup_steps": 1},
            "checkpoint": {"every": 0},
            "logging": {"tensorboard": False},
            "preferences": {
                "batch_size": 16,
                "loss": {"name": "bradley_terry", "options": {"center_coef": 0.01}},
            },
        }
        return make_config(tiny_model, **{**defaults, **sections})

    return make


@pytest.fixture(scope="module")
def trained(new_run: Any) -> tuple[Config, dict[str, Any]]:
    """A run of seed 0, and its summary."""
    config = new_run("scores")
    return config, run(config, train_reward_model)


def heldout(config: Config) -> list[Sample]:
    from vlrl.data import open_dataset

    processor = open_tiny(Path(config.model.path))
    return [processor.sample(row) for row in open_dataset(config.data.eval[0], "data.eval")]


def plain_scores(config: Config, samples: list[Sample]) -> np.ndarray:
    """[n, 2] scores of chosen and rejected, by transformers and the code that lies in the folder."""
    from transformers import AutoModelForSequenceClassification, AutoProcessor

    folder = config.run_dir / "model"
    model = AutoModelForSequenceClassification.from_pretrained(
        folder, trust_remote_code=True, dtype=torch.float32
    ).eval()
    processor, found = AutoProcessor.from_pretrained(folder), []
    for sample in samples:
        for said in (sample.target, sample.rejected):
            turns = [*sample.messages, {"role": "assistant", "content": said}]
            text = processor.apply_chat_template(turns, tokenize=False)
            inputs = processor(
                text=[text], images=[sample.media[0].frames[0]], do_resize=False, return_tensors="pt"
            )
            with torch.inference_mode():
                found.append(model(**inputs).logits.item())
    return np.array(found).reshape(-1, 2)


def test_heldout_pairs_are_told_apart_by_their_image(trained: Any) -> None:
    config, summary = trained
    assert summary["heldout_preference_accuracy_before"] < 0.9  # of a random head
    assert summary["heldout_preference_accuracy_after"] >= 0.9
    found = metrics(config)
    assert found[-1]["preference/loss"] < 0.3 < found[0]["preference/loss"]
    assert abs(found[-1]["preference/mean_reward"]) < 1.0
    assert {name for name in found[-1] if name != "step"} <= METRICS.keys()
    assert "preference/chosen_logprob" not in found[-1]


def test_the_folder_is_a_classifier_of_transformers_with_the_trainers_scores(trained: Any) -> None:
    config, summary = trained
    chosen, rejected = plain_scores(config, heldout(config)).T
    assert chosen.mean() == pytest.approx(summary["heldout_preference_chosen_reward_after"], abs=1e-3)
    assert rejected.mean() == pytest.approx(summary["heldout_preference_rejected_reward_after"], abs=1e-3)
    assert (chosen > rejected).mean() == summary["heldout_preference_accuracy_after"]


@pytest.mark.parametrize("seed", [1, 2])
def test_other_seeds_learn_too(new_run: Any, seed: int) -> None:
    summary = run(new_run(f"seed{seed}", seed), train_reward_model)
    assert summary["heldout_preference_accuracy_after"] >= 0.9


def test_a_resumed_run_is_the_run(new_run: Any) -> None:
    whole, stopped = (new_run(name, num_steps=6) for name in ("whole", "stop"))
    run(whole, train_reward_model)
    with pytest.raises(Interrupted, match="--resume"):
        run(stopped, train_reward_model, stop_after=2)
    run(stopped, train_reward_model, resume=True)
    assert metrics(stopped) == metrics(whole)
    weights = [(c.run_dir / "model" / "model.safetensors").read_bytes() for c in (whole, stopped)]
    assert weights[0] == weights[1]


@pytest.fixture(scope="module")
def endpoint(trained: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The trained model behind vLLM's server."""
    with serving(trained[0].run_dir / "model", tmp_path_factory.mktemp("server") / "log") as url:
        yield {"base_url": url, "model": "rm", "max_retries": 0, "image_format": "png"}


def test_its_engine_scores_completions_as_it_was_trained(trained: Any, endpoint: dict[str, Any]) -> None:
    config, _ = trained
    samples = heldout(config)[:4]

    async def scores() -> list[float]:
        return await asyncio.gather(
            *(
                classifier(
                    str(said), None, endpoint=endpoint, verbatim=True, prompt=s.messages, media=s.media
                )
                for s in samples
                for said in (s.target, s.rejected)
            )
        )

    expected = 1 / (1 + np.exp(-plain_scores(config, samples).ravel()))
    assert asyncio.run(scores()) == pytest.approx(expected.tolist(), abs=1e-3)


def test_a_policy_is_trained_with_it(new_run: Any, endpoint: dict[str, Any]) -> None:
    config = new_run(
        "policy",
        preferences=None,
        rewards=[{"name": "classifier", "options": {"endpoint": endpoint, "verbatim": True}}],
        rollout={"prompts_per_step": 4, "group_size": 4, "max_tokens": 6},
        num_steps=2,
    )
    grpo.train(config)
    for step in metrics(config):
        assert 0 < step["reward/mean"] < 1
        assert step["optim/grad_norm"] > 0
        assert not step.get("failures/reward")
