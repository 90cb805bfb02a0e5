"""Engines that are sent adapters alone (lora.sync=adapter) agree with the trainer at every step."""

from __future__ import annotations

import asyncio
import io
import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from builders import make_config, make_context, make_group, open_tiny, random_image, row
from plain_model import largest_difference, model_of
from rich.console import Console
from safetensors.torch import load_file
from versions import Hold

from vlrl import cluster, grpo
from vlrl.algorithm.credit import group_with_advantages
from vlrl.config import Config
from vlrl.engine.policy import VllmPolicy
from vlrl.errors import EngineError
from vlrl.model.logprobs import DeviceBatch, TreeLogprobs
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.rollout.groups import rollout_groups
from vlrl.rollout.session import Session
from vlrl.run.parity import logprob_differences
from vlrl.tracking.console import TrainConsole
from vlrl.trainer.driver import Trainer
from vlrl.types import Generation, Group, Sample, Sampling, Score
from vlrl.weights.manifest import Manifest, Segment

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # minutes of engines and ranks

TOLERANCE = 1e-4
LANGUAGE = ["language_layers"]
ALL = ["language_layers", "vision_tower", "projector"]
RUNS = [
    ("shared_memory", "continuous", 1, LANGUAGE),
    ("disk", "batch", 2, ALL),
    ("broadcast", "continuous", 2, ALL),
]

REWARD = '''
def parity(completion, answer):
    """Something that a random model gets right every other time."""
    return float(sum(map(ord, completion)) % 2)
'''


def lora(targets: list[str], **options: Any) -> dict[str, Any]:
    return {"rank": 3, "alpha": 6, "targets": targets, "sync": "adapter", **options}


def train(config: Config, *, resume: bool = False) -> list[dict[str, Any]]:
    """Every step's metrics of the whole run."""
    with TrainConsole("test", config.num_steps, console=Console(file=io.StringIO())) as console:
        grpo.train(config, console, resume=resume)
    return [json.loads(line) for line in (config.run_dir / "metrics.jsonl").read_text().splitlines()]


def run_config(
    model: Path, folder: Path, targets: list[str], *, rslora: bool = False, **sections: Any
) -> Config:
    (folder / "reward.py").write_text(REWARD)
    return make_config(
        model,
        run={"name": "run", "dir": str(folder)},
        rewards=[{"name": f"{folder}/reward.py:parity"}],
        lora=lora(targets, rslora=rslora),
        optim={"lr": 3e-2},
        logging={"tensorboard": False},
        **{"num_steps": 2, **sections},
    )


@pytest.mark.parametrize(("transport", "mode", "num_replicas", "targets"), RUNS)
def test_a_run_keeps_parity(
    tiny_model: Path, local_ray: None, tmp_path: Path, transport: str, mode: str, num_replicas: int,
    targets: list[str],
) -> None:  # fmt: skip
    config = run_config(
        tiny_model,
        tmp_path,
        targets,
        rslora=transport == "disk",  # trainer and engine each compute the scale
        generator={"mode": mode, "num_replicas": num_replicas, "cpus": 0.5},
        weights={
            "transport": transport,
            "bucket_mib": 0.05,
            "probe_every": 1,
            "checksums": True,
        },
    )
    lines = train(config)
    assert [line["step"] for line in lines] == [0, 1]
    assert all(line["parity/max_abs_logprob_diff"] < TOLERANCE for line in lines)
    saved = load_file(config.run_dir / "model" / "adapter" / "adapter_model.safetensors")
    assert all(bool(t.any()) for name, t in saved.items() if ".lora_B." in name), "nothing was learnt"
    before, after = (
        dict(model_of(folder).named_parameters()) for folder in (tiny_model, config.run_dir / "model")
    )
    changed = {name for name in before if not before[name].equal(after[name])}
    assert changed == {
        name.removeprefix("base_model.model.").replace(".lora_A.", ".")
        for name in saved
        if ".lora_A." in name
    }


def test_a_resumed_run_sends_its_adapters_first(tiny_model: Path, local_ray: None, tmp_path: Path) -> None:
    train(run_config(tiny_model, tmp_path, LANGUAGE))
    lines = train(run_config(tiny_model, tmp_path, LANGUAGE, num_steps=3), resume=True)
    assert [line["step"] for line in lines] == [0, 1, 2]
    assert lines[2]["parity/max_abs_logprob_diff"] < TOLERANCE


class Pair:
    """A trainer and one engine, and what they make of a few questions."""

    def __init__(self, config: Config, model: Path) -> None:
        self.config, self.model, self.processor = config, model, open_tiny(model)
        rows = [row("Which?", [random_image(56, 84, seed=i)], row_id=str(i)) for i in range(2)]
        self.samples = [self.processor.sample(each) for each in rows]
        self.trainer = Trainer(config, self.processor.banned_token_ids)
        self.policy = VllmPolicy(config, self.processor)

    def learn(self, lr: float = 2e-2) -> None:
        groups = [
            make_group([4, 3], sample=s, advantages=[1.0, -1.0], seed=i) for i, s in enumerate(self.samples)
        ]
        batch = pack(
            groups,
            self.processor.pixels,
            PackOptions(
                num_ranks=1,
                max_tokens=2048,
                aggregation="token",
                max_completion_tokens=8,
                keep_zero_advantage=True,
            ),
        )
        self.trainer.step(batch, "sft", lr)

    def generate(self) -> list[Group]:
        context = make_context(self.policy, self.processor, self.config)
        return asyncio.run(rollout_groups(self.samples, context, seed_path=(0, 0))).groups

    def disagreement(self, groups: list[Group]) -> tuple[float, float]:
        """Logprob difference of the engine from the trainer, and from the base model."""
        differences = logprob_differences(groups, self.trainer, self.processor.pixels, self.config)
        base = model_of(self.model)
        return differences.largest, largest_difference(base, self.processor, groups, 1.0)

    def close(self) -> None:
        self.policy.close()
        self.trainer.close()


def test_from_zero_to_a_replaced_engine(tiny_model: Path, local_ray: None, tmp_path: Path) -> None:
    """Version 0 is the base; an engine in a dead one's place has the adapter; a damaged one is refused."""
    config = make_config(tiny_model, lora=lora(ALL), run={"dir": str(tmp_path)}, weights={"checksums": True})
    pair = Pair(config, tiny_model)
    try:
        pair.trainer.wait_ready()
        pair.policy.wait_ready()
        assert max(pair.disagreement(pair.generate())) < TOLERANCE
        pair.learn()
        pair.trainer.write_weights()
        manifest = pair.trainer.manifest
        assert {e.name.rpartition(".lora_")[2] for e in manifest.entries} == {"A.weight", "B.weight"}
        assert manifest.num_bytes < 0.2 * 4 * pair.trainer.num_parameters
        pair.policy.load_weights(manifest, 1)
        to_trainer, to_base = pair.disagreement(pair.generate())
        assert to_trainer < TOLERANCE
        assert to_base > 1e-2

        [replica] = pair.policy._replicas
        os.kill(
            int(cluster.fetch(replica.actor.__ray_call__.remote(lambda actor: __import__("os").getpid()))),
            signal.SIGKILL,
        )
        to_trainer, to_base = pair.disagreement(pair.generate())
        assert pair.policy.counts["replaced_engines"] == 1
        assert to_trainer < TOLERANCE
        assert to_base > 1e-2

        flat = Segment(manifest).flat[manifest.entries[-1].name]
        flat[0] += 1.0
        with pytest.raises(EngineError, match="not what the trainer sent"):
            pair.policy.load_weights(manifest, 2)
        assert pair.disagreement(pair.generate())[0] < TOLERANCE  # it has kept what it had
    finally:
        pair.close()


def test_adapters_that_come_in_the_middle_of_a_request_are_exact(
    tiny_model: Path, local_ray: None, tmp_path: Path
) -> None:
    """Tower and language layers adapted: the parts of a request against a cold engine, and the merged models.

    Greedily, so that the cold engine generates the same tokens; with another version's adapter it would not.
    """
    config = make_config(
        tiny_model,
        lora=lora(ALL),
        run={"dir": str(tmp_path)},
        rollout={"max_tokens": 24},
        generator={"mode": "continuous"},
    )
    pair, hold = Pair(config, tiny_model), Hold(7, 16)
    sample = pair.processor.sample(
        row("What do you see? " * 12, [random_image(168, 168), random_image(56, 56)])
    )

    async def generate(num_tokens: int, before: Generation | None = None, start: int = 0) -> Generation:
        session = Session(sample, 0)
        if before is not None and start:
            ids, logprobs = before.token_ids[:start], before.sampler_logprobs[:start]
            session.append_action(Generation(ids, logprobs, (), finished=False))
        return await pair.policy.generate(session, Sampling(0.0, num_tokens, 0))

    async def generate_through(manifests: list[Manifest]) -> Generation:
        actor = pair.policy._replicas[0].actor
        await actor.__ray_call__.remote(lambda actor: hold.install(actor))
        generating = asyncio.create_task(generate(24))
        for version in (1, 2):
            while await actor.__ray_call__.remote(lambda actor: actor.hold.reached) < version:
                await asyncio.sleep(0.01)
            await pair.policy.update(manifests[version], version)
        return await generating

    try:
        pair.trainer.wait_ready()
        pair.policy.wait_ready()
        manifests = []
        for version in range(3):
            pair.trainer.write_weights()
            kept = tmp_path / f"adapter-{version}"
            shutil.copyfile(pair.trainer.manifest.path, kept)
            manifests.append(replace(pair.trainer.manifest, path=str(kept)))
            pair.trainer.save_model(tmp_path / f"merged-{version}")
            pair.learn()
        pair.policy.load_weights(manifests[0], 0)
        whole = asyncio.run(generate_through(manifests))
        spans = [(s.version, s.start, s.end) for s in whole.version_spans]
        assert spans == [(0, 0, 7), (1, 7, 16), (2, 16, 24)]
        for version, start, end in spans:
            pair.policy.load_weights(manifests[version], version)
            part = asyncio.run(generate(end - start, whole, start))
            assert part.token_ids.tolist() == whole.token_ids[start:end].tolist()
            assert np.abs(part.sampler_logprobs - whole.sampler_logprobs[start:end]).max() < TOLERANCE
        errors = [whole_errors(pair, tmp_path / f"merged-{version}", sample, whole) for version in range(3)]
        for version, start, end in spans:
            for other in range(3):
                worst = errors[other][start:end].max()
                assert worst < TOLERANCE if other == version else worst > 100 * TOLERANCE
    finally:
        pair.close()


def whole_errors(pair: Pair, folder: Path, sample: Sample, generated: Generation) -> np.ndarray:
    """|logprob by the model in a folder - the engine's| of each token generated."""
    session = Session(sample, 0)
    session.append_action(generated)
    trajectory = session.trajectory("", "ok", 0.0)
    trajectory.score = Score(0.0, {})
    [[micro_batch]] = pack(
        [group_with_advantages([trajectory], [1.0])],
        pair.processor.pixels,
        PackOptions(
            num_ranks=1,
            max_tokens=4096,
            aggregation="token",
            max_completion_tokens=24,
            keep_zero_advantage=True,
        ),
    )
    banned = pair.processor.banned_token_ids
    model = TreeLogprobs(model_of(folder), temperature=1.0, banned_token_ids=banned)
    with torch.no_grad():
        logprobs, _ = model(DeviceBatch.of(micro_batch, torch.device("cpu")))
    return np.abs(logprobs.numpy() - generated.sampler_logprobs)
