"""A realistic run folder, made by the writers a run uses."""

import hashlib
import json
import math
import re

import numpy as np
import yaml

from vlrl.config import parse_config
from vlrl.config.options import LoggingConfig
from vlrl.envs.visual.questions.digit_sum import INSTRUCTION, DigitSum
from vlrl.tracking.rollouts.records import rollout_records, write_rollouts
from vlrl.tracking.sinks import MetricSinks
from vlrl.types import Group, Ledger, Media, Prompt, Sample, Score, Trajectory, Turn, VersionSpan

NUM_STEPS, NUM_ROLLOUTS, NUM_PADS = 60, 16, 4

CONFIG = {
    "run": {"name": "digits", "seed": 3},
    "model": {"path": "models/tiny"},
    "data": {"train": [{"name": "digit_sum"}]},
    "rewards": [{"name": "exact"}, {"name": "format"}],
    "num_steps": NUM_STEPS,
    "eval": {"every": 20, "target_accuracy": 0.9},
}

SUMMARY = {
    "run": "digits",
    "seed": 3,
    "model_path": "models/tiny",
    "num_parameters": 1_620_000,
    "heldout_accuracy_before": 0.41,
    "heldout_accuracy_after": 0.947,
    "heldout_accuracy_before_greedy": 0.41,
    "heldout_accuracy_after_greedy": 0.947,
    "heldout_accuracy_before_sampled": 0.33,
    "heldout_accuracy_after_sampled": 0.925,
    "num_heldout": 360,
    "num_steps": NUM_STEPS,
    "target_accuracy": 0.9,
    "target_reached": True,
    "seconds_by_phase": {"installing": 95.2, "warm start": 71.0, "evaluating": 9.3, "GRPO": 141.8},
    "versions": {"torch": "2.13.0", "vllm": "0.32.0"},
    "device": "cpu, 2 cores",
}


class FakeProcessor:
    """Tokens are words and marks, numbered as they come."""

    def __init__(self):
        self.words = []

    def encode(self, text):
        pieces = re.findall(r"<\|\w+\|>|</?\w+>|\d|\n| ?\w+|[^\w]", text)
        self.words += [piece for piece in dict.fromkeys(pieces) if piece not in self.words]
        return np.array([self.words.index(piece) for piece in pieces])

    def token_texts(self, token_ids):
        return [self.words[i] for i in token_ids]


def make_sample(row, processor):
    images = [part["image"] for part in row["messages"][0]["content"] if part["type"] == "image"]
    media = tuple(
        Media(
            "image", hashlib.sha256(image.tobytes()).hexdigest(), image[None], (56, 56), (1, 4, 4), NUM_PADS
        )
        for image in images
    )
    pads = ("<|vision_start|>" + NUM_PADS * "<|image_pad|>" + "<|vision_end|>") * len(media)
    ids = processor.encode(f"<|im_start|>user\n{pads}{INSTRUCTION}<|im_end|>\n<|im_start|>assistant\n")
    prompt = Prompt(ids, ids, np.zeros((3, len(ids)), np.int64), len(ids))
    return Sample(row["id"], tuple(row["messages"]), media, prompt, answer=row["answer"])


def make_group(row, completion, processor, rng, outcome="ok"):
    sample = make_sample(row, processor)
    generated = processor.encode(completion + "<|im_end|>")
    start, count = len(sample.prompt.token_ids), len(generated)
    right = f"<answer>{row['answer']}</answer>" in completion
    logprobs = -rng.exponential(0.4, count) * (rng.random(count) < 0.4)
    trajectory = Trajectory(
        sample=sample,
        group_index=0,
        ledgers=(
            Ledger(
                token_ids=np.concatenate([sample.prompt.token_ids, generated]),
                position_ids=np.zeros((3, start + count), np.int64),
                loss_mask=np.arange(start + count) >= start,
                sampler_logprobs=np.concatenate([np.zeros(start), logprobs]).astype(np.float32),
                version_spans=(VersionSpan(0, start, start + count),),
                turns=(Turn((0, start), (start, start + count), num_media=len(sample.media)),),
                media=sample.media,
            ),
        ),
        completion=completion,
        outcome=outcome,
        score=Score(right + 0.1, {"exact": float(right), "format": 0.1}),
    )
    return Group([trajectory])


def write_phase(run_dir, phase, step, completions):
    processor, rng, rows = FakeProcessor(), np.random.default_rng(step), DigitSum("heldout", num_rows=20)
    groups = [
        make_group(rows[i], text, processor, rng, "truncated" if "…" in text else "ok")
        for i, text in enumerate(completions)
    ]
    records = rollout_records(groups, processor, phase=phase, step=step)
    write_rollouts(
        run_dir / "rollouts" / f"{phase}.jsonl", records, [m for g in groups for m in g.trajectories[0].media]
    )


def step_metrics(step, rng):
    skill, noise = 1 / (1 + math.exp(-(step - 22) / 8)), rng.normal(0, 0.025)
    times = {"generate": 0.62, "reward": 0.004, "train": 0.48, "sync": 0.09, "wait": 0.02}
    times = {name: t * rng.uniform(0.9, 1.2) for name, t in times.items()}
    return {
        "reward/mean": 0.43 + 0.53 * skill + noise,
        "reward/std": 0.5 - 0.3 * skill,
        "reward/exact": 0.33 + 0.58 * skill + noise,
        "reward/format": 0.1,
        "reward/zero_variance_groups": 0.1 + 0.6 * skill,
        "completion/num_tokens_mean": 17 - 2 * skill + noise,
        "completion/truncated_fraction": 0.02 * (1 - skill),
        "policy/entropy": 0.6 - 0.45 * skill + noise / 3,
        "policy/sampler_mismatch": math.nan if step == 7 else 2e-7 * rng.uniform(0.5, 2),
        "policy/clip_fraction": 0.01 * rng.random(),
        "optim/grad_norm": 0.9 * rng.uniform(0.6, 1.3),
        "throughput/tokens_per_s": 1100 * rng.uniform(0.9, 1.1),
        "parity/max_abs_logprob_diff": 4e-6 * rng.uniform(0.5, 2),
        **{f"time_s/{name}": t for name, t in times.items()},
        "time_s/step": sum(times.values()) + 0.03,
    }


def write_run(run_dir):
    rng = np.random.default_rng(0)
    with MetricSinks(run_dir, LoggingConfig(tensorboard=False)) as sinks:
        for step in range(NUM_STEPS):
            sinks.log(step, step_metrics(step, rng))
            if step in (20, 40):
                sinks.log(step, {"heldout/accuracy_greedy": 0.5 + step / 100})
    config = parse_config(CONFIG).model_dump(mode="json")
    (run_dir / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))
    (run_dir / "summary.json").write_text(json.dumps(SUMMARY))
    rows = [row for row in (DigitSum("heldout", num_rows=20)[i] for i in range(18))]
    after = [row["target"] for row in rows]
    guesses = [f"<think>{i % 10}+3</think><answer>{i % 10 + 3}</answer>" for i in range(18)]
    before = [after[i] if i % 3 == 1 else guesses[i] for i in range(18)]
    before[2], before[5] = "<think>4+4+4+4+4+4+4…", "3 + 5 is <answer></answer>\n\n8"
    write_phase(run_dir, "before", 0, before)
    write_phase(run_dir, "after", NUM_STEPS, after)


def edit_summary(run_dir, **changes):
    (run_dir / "summary.json").write_text(json.dumps(SUMMARY | changes))
