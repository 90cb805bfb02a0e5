"""An update of the weights while an engine generates: every token must be of its own version's weights."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rows_step import rows_logprobs
from short_run import config_of

from vlrl.algorithm.credit import group_with_advantages
from vlrl.packing.pack import branches_of
from vlrl.packing.prefix_tree import Branch, Keys
from vlrl.rollout.session import Session
from vlrl.run.run import Run
from vlrl.tracking.console import TrainConsole
from vlrl.types import Sampling, Score
from vlrl.weights.manifest import Manifest, Segment, create_segment, plan_segment

SHARED_MEMORY = Path("/dev/shm")
NUM_RUNNING = 8
NUM_TOKENS = 400
BEFORE_S = 0.3
"""Generated for so long before the update."""
MOVED = 0.3
"""Standard deviations by which every parameter is moved."""


def update_in_flight(model: Path, folder: Path) -> dict[str, Any]:
    """Update a float32 engine in the middle of requests, and compare every token with transformers.

    Returns:
        Seconds for which nothing was generated, bytes/s of the load, and by version the largest difference
        of the tokens that requests which saw both versions generated under it: from that version's weights,
        and from the other's.
    """
    options = ("generator.mode=continuous", "generator.num_replicas=1", "rollout.temperature=1.0")
    config = config_of(model, folder, "in_flight", *options)
    versions = [load(model), moved(load(model))]
    manifest = segment_of(versions[1])
    try:
        with (
            TrainConsole("in flight", 1, json_mode=True) as console,
            Run(config, console, train=False, generate=True) as run,
        ):
            sessions, pause_s = run.runner.run(generate_through(run, manifest))
            rows = [row_of(session) for session in sessions]
            found = by_version(versions, rows, run.processor)
    finally:
        Path(manifest.path).unlink(missing_ok=True)
    return {
        "num_requests": len(rows),
        "pause_ms": 1e3 * pause_s,
        "mib": manifest.num_bytes / 2**20,
        "load_gb_per_s": manifest.num_bytes / pause_s / 1e9,
        "versions": found,
    }


def load(model: Path) -> Any:
    """The model in float32 by transformers."""
    from transformers import AutoModelForImageTextToText

    device = "cuda" if torch.cuda.is_available() else "cpu"
    return AutoModelForImageTextToText.from_pretrained(model, dtype=torch.float32).to(device).eval()


def moved(model: Any) -> Any:
    """Every parameter moved, the tower's too: tokens tell which weights they are of."""
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = float(parameter.std()) if parameter.numel() > 1 else 1.0
            parameter.add_(MOVED * scale * torch.randn_like(parameter))
    return model


def segment_of(model: Any) -> Manifest:
    """The model's weights in shared memory, as a trainer writes them."""
    layout = [(n, str(p.dtype).removeprefix("torch."), tuple(p.shape)) for n, p in model.named_parameters()]
    manifest = plan_segment(SHARED_MEMORY / f"vlrl-in-flight-{os.getpid()}", layout)
    create_segment(manifest)
    segment = Segment(manifest)
    for name, parameter in model.named_parameters():
        segment.write_shard(name, parameter.data, 0)
    return manifest


async def generate_through(run: Run, manifest: Manifest) -> tuple[list[Session], float]:
    """(sessions that saw both versions, seconds for which nothing was generated)."""
    done: list[Session] = []
    updated = asyncio.Event()

    async def generate(number: int) -> None:
        while not updated.is_set():
            session = Session(run.first_samples[number % len(run.first_samples)], number)
            sampling = Sampling(1.0, NUM_TOKENS, seed=number + NUM_RUNNING * len(done))
            session.append_action(await run.policy.generate(session, sampling))
            done.append(session)

    running = [asyncio.create_task(generate(number)) for number in range(NUM_RUNNING)]
    await asyncio.sleep(BEFORE_S)
    try:
        pause_s = await run.policy.update(manifest, 1)
    finally:
        updated.set()
    await asyncio.gather(*running)
    return [session for session in done if len(spans_of(session)) > 1], pause_s


def spans_of(session: Session) -> Any:
    """The versions of a session's only action."""
    return session.trajectory("", "ok", 0.0).ledgers[0].version_spans


def row_of(session: Session) -> Branch:
    """A session as a row whose generated tokens are all trained."""
    trajectory = session.trajectory("", "ok", 0.0)
    trajectory.score = Score(0.0, {})
    [branch] = branches_of(group_with_advantages([trajectory], [1.0]), [1.0], Keys())
    return branch


def by_version(versions: list[Any], rows: list[Branch], processor: Any) -> list[dict[str, float]]:
    """Differences of each version's tokens from the weights of that version and of the other."""
    found: list[dict[str, list[float]]] = [{"own": [], "other": []} for _ in versions]
    for row in rows:
        pixels = processor.pixels(row.ledger.media)
        trained = np.flatnonzero(row.trained)
        of_token = np.full(len(row.ledger.token_ids), -1)
        for span in row.ledger.version_spans:
            of_token[span.start : span.end] = span.version
        for number, model in enumerate(versions):
            with torch.no_grad():
                logprobs = rows_logprobs(model, [row], pixels, processor.banned_token_ids)
            error = np.abs(logprobs.cpu().numpy() - row.ledger.sampler_logprobs[trained])
            for version in range(len(versions)):
                who = "own" if version == number else "other"
                found[version][who] += error[of_token[trained] == version].tolist()
    return [
        {"num_tokens": len(f["own"]), **{who: max(f[who], default=float("nan")) for who in ("own", "other")}}
        for f in found
    ]
