"""What configs say of the hardware that they need, in their first comment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vlrl.config import Config, load_config
from vlrl.plan.machine import PlannedMachine
from vlrl.plan.model_config import known_models
from vlrl.plan.phases import GIB
from vlrl.plan.workload import Prompts

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))
HUB_CONFIGS = [file for file in CONFIGS if load_config(file).model.path in known_models()]
NEEDS = re.compile(
    r"(?:Needs|Written for) (\d+) GPUs? of (\d+) GB(?:[, and]+(\d+) GiB of host memory)?", re.IGNORECASE
)
OTHER = re.compile(r"^#   (\d+) GB, (\d+) GiB of host memory: (.+)$", re.MULTILINE)
"""One GPU of another size, with the overrides that it takes."""


@dataclass(frozen=True)
class Claim:
    """A machine that a config says it fits.

    Attributes:
        num_gpus: of one machine.
        gigabytes: of each, as it is sold.
        host_gib: host memory, if it is named.
        overrides: that it takes.
    """

    num_gpus: int
    gigabytes: int
    host_gib: int | None
    overrides: Sequence[str] = ()

    @property
    def memory_gib(self) -> int:
        """What the driver shows of it: a little less than as many GiB."""
        return self.gigabytes - 1

    @property
    def machine(self) -> PlannedMachine:
        """It, to plan for."""
        return PlannedMachine(
            "cuda",
            self.memory_gib * GIB,
            4e14,
            gpus_per_node=self.num_gpus,
            host_memory_bytes=self.host_gib * GIB if self.host_gib else None,
        )


def claims(file: Path) -> list[Claim]:
    """The config's own, then those for other GPUs."""
    text = file.read_text(encoding="utf-8")
    comment = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
    match = NEEDS.search(comment)
    assert match is not None, f"{file.name}: the comment must say 'Needs N GPUs of M GB'"
    host = int(match[3]) if match[3] else None
    others = [Claim(1, int(gb), int(gib), words.split()) for gb, gib, words in OTHER.findall(text)]
    return [Claim(int(match[1]), int(match[2]), host), *others]


PLANNED = re.compile(
    r"# Not run at full size\. By `vlrl plan` a GPU trains in (\d+) GiB, a step takes ([\d.]+) (\w+), "
    r"all ([\d.]+) (\w+)\."
)
SECONDS = {"s": 1, "min": 60, "h": 3600, "days": 86400}


@dataclass(frozen=True)
class Planned:
    """What a config's first line says that `vlrl plan` predicts: GiB of a GPU's training, seconds."""

    training_gib: float
    step_s: float
    all_s: float


def planned(file: Path) -> Planned:
    """The prediction in the first line of a config that has not been run."""
    first = file.read_text(encoding="utf-8").splitlines()[0]
    match = PLANNED.fullmatch(first)
    assert match is not None, f"{file.name}: the first line must say {PLANNED.pattern}"
    gib, step, step_unit, all_, unit = match.groups()
    return Planned(float(gib), float(step) * SECONDS[step_unit], float(all_) * SECONDS[unit])


def prompts_of(config: Config) -> Prompts:
    """A prompt of some sentences and an image of the config's limit, a megapixel at most."""
    pixels = min(config.processor.max_pixels, 1_000_000)
    return Prompts(
        text_tokens=256, num_images=1, image_pixels=pixels, completion_tokens=config.rollout.max_tokens
    )
