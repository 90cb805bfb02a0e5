"""The constants of the time that `vlrl plan` predicts: what was measured, and what is an estimate.

docs/scaling.md holds the predictions against published figures. Whoever measures a constant puts the figure
and the program that prints it here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rate:
    """One constant of the time model, and where it comes from.

    Attributes:
        value: in `unit`.
        unit: of the value.
        source: program that prints it, or what it is estimated from.
        measured: false for estimates.
    """

    value: float
    unit: str
    source: str
    measured: bool = False


H100 = "estimate for an H100"
CHECK = "one H100, benchmarks/gpu/check.py"

MATMUL = {
    "cpu": Rate(1e11, "operations/s of a rank", "estimate for two cores"),
    "cuda": Rate(7.8e14, "operations/s of a rank", f"{CHECK} facts, bfloat16", True),
}
"""Where a machine is described without --teraflops; here it is measured."""
REACHED = {
    "cpu": Rate(0.4, "of the matmul rate, training", "benchmarks/plan_accuracy.py: 0.25 to 0.7", True),
    "cuda": Rate(0.33, "of the matmul rate, training", f"{CHECK} training: 0.31 to 0.34 of 3B", True),
}
LINK = Rate(200e9, "bytes/s, ZeRO-3 inside a node", f"{H100} with NVLink")
NETWORK = Rate(400e9, "bytes/s of a node", "estimate: eight adapters of 400 Gbit/s")
NETWORK_REACHED = Rate(0.7, "of the network", "estimate")
HOST_UPDATE = Rate(10e9, "bytes/s, a rank's optimizer in host memory", "estimate")

PREFILL_REACHED = Rate(0.4, "of the matmul rate, prompts in the engine", "estimate")
MEMORY_READ = Rate(2.9e12, "bytes/s of a GPU's memory, decoding", f"{CHECK} facts: a copy", True)
LAYER = Rate(1.0e-4, "s a layer and token, CUDA graphs", "estimate from vLLM's published latencies")
LAYER_EAGER = Rate(4.8e-4, "s a layer and token, eager", "estimate from 20 ms a token of a 3B model")
SEQUENCE = Rate(2e-5, "s a running completion and token", "estimate: scheduling, sampling, log-probabilities")

DRIVER_TURN = Rate(0.00016, "s of driver time a turn", "benchmarks/driver.py: driver_ms_per_turn", True)
WORKER_TURN = Rate(0.0025, "s of a worker a turn", "benchmarks/driver.py: text_turn", True)
WORKER_IMAGE = Rate(0.0102, "s of a worker a megapixel", "benchmarks/driver.py: megapixel", True)
PACK_TURN = Rate(0.0003, "s of a worker a turn", "benchmarks/driver.py: pack_ms_per_turn", True)
ENGINE_IMAGE = Rate(0.015, "s of an engine a megapixel", "estimate from benchmarks/media.py: patches 0.006")
RANK_IMAGE = Rate(0.010, "s of a rank a megapixel", "benchmarks/media.py: patches 0.006, and a copy", True)
PIXEL_BYTES = Rate(3.0, "bytes a pixel, worker to ranks", "uint8, three colours", True)
OBJECT_STORE = Rate(5.8e9, "bytes/s into Ray's object store", "memcpy of benchmarks/weight_sync.py", True)
OBJECT_PUSH = Rate(1.5e9, "bytes/s from a worker's node to others", "estimate for Ray's object transfer")

SEGMENT_WRITE = Rate(24e9, "bytes/s of a rank into shared memory", f"{CHECK} training: 24 to 27", True)
SEGMENT_LOAD = Rate(
    9.7e9, "bytes/s of a GPU out of shared memory", f"estimate: pageable copies of {CHECK} facts"
)
TENSOR = Rate(
    3.5e-4, "s a tensor and update in the engine", "benchmarks/weight_sync.py: 26.5 ms for 76", True
)
BROADCAST = Rate(17.5e9, "bytes/s of a broadcast", H100)
BROADCAST_START = Rate(0.5, "s of a broadcast", "estimate")
DISK = Rate(1e9, "bytes/s of a shared disk, each way", "estimate")
PINNED_COPY = Rate(55e9, "bytes/s between a GPU and pinned host memory", f"{CHECK} facts", True)
ENGINE_WAKE = Rate(1.0, "s of an engine's sleep and waking", "estimate")


def all_rates() -> dict[str, Rate]:
    """Every constant by name, those by device as name.device."""
    found: dict[str, Rate] = {}
    for name, value in globals().items():
        if isinstance(value, Rate):
            found[name.lower()] = value
        elif name in ("MATMUL", "REACHED"):
            found |= {f"{name.lower()}.{device}": rate for device, rate in value.items()}
    return found
