"""Where a rank's optimizer step goes: a trace for chrome://tracing or Perfetto, and one page of sums."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from vlrl.config.memory import ProfileConfig
from vlrl.model.parts import VISION_PARTS, part_of

PHASES = ("tower", "language model", "head and loss", "optimizer", "rest")
COMMUNICATION = ("c10d::", "gloo:", "nccl:", "ncclDevKernel", "record_param_comms")
NUM_OPERATORS = 15


class StepProfiler:
    """Profiles the optimizer steps that options.steps names, counted from the start of the process.

    Phases follow each other, forward and backward, so each moment of a step counts for one of them. The
    tower's begins where its features are asked for and, backward, where its last block gets its gradient.
    What is outside the trained model, the reference's pass too, is the rest. On a GPU the device is waited
    for at each change: a profiled step is slower than others.
    """

    def __init__(self, options: ProfileConfig, folder: Path, rank: int, wrapped: Any) -> None:
        """Args: `wrapped` is the TreeLogprobs that is trained; files go to `folder`/profile."""
        self._steps, self._folder, self._rank = set(options.steps), folder / "profile", rank
        self._wrapped = wrapped
        self._index = -1
        self._marks: list[tuple[float, str]] | None = None

    @contextmanager
    def step(self) -> Iterator[None]:
        """One optimizer step."""
        self._index += 1
        if self._index not in self._steps:
            yield
            return
        activities = [torch.profiler.ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(torch.profiler.ProfilerActivity.CUDA)
        hooks = list(self._hooks())
        try:
            with torch.profiler.profile(activities=activities) as profile:
                self._marks = []
                self.mark("rest")
                yield
                self.mark("rest")
                marks, self._marks = self._marks, None
        finally:
            self._marks = None
            for hook in hooks:
                hook.remove()
        self._write(profile, marks)

    def mark(self, phase: str) -> None:
        """Count time from now on as this phase's; nothing outside a profiled step."""
        if self._marks is not None:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self._marks.append((time.perf_counter(), phase))

    def _hooks(self) -> Iterator[Any]:
        """What marks the changes, forward by whole modules and backward by each stack's last block."""
        model, head = self._wrapped.model, self._wrapped.head
        starts, lasts = _towers(model)
        for module in starts:
            yield module.register_forward_pre_hook(self._marker("tower"))
        for block in lasts:
            yield block.register_full_backward_pre_hook(self._marker("tower"))
        language = model.get_decoder() if hasattr(model, "get_decoder") else model.model.language_model
        yield language.register_forward_pre_hook(self._marker("language model"))
        yield _stacks(language, "")[-1][-1].register_full_backward_pre_hook(self._marker("language model"))
        yield head.register_forward_pre_hook(self._marker("head and loss"))
        yield head.register_full_backward_pre_hook(self._marker("head and loss"))

    def _marker(self, phase: str) -> Callable[..., None]:
        def marker(*_: Any) -> None:
            self.mark(phase)

        return marker

    def _write(self, profile: Any, marks: list[tuple[float, str]]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        stem = self._folder / f"step_{self._index:06d}_rank_{self._rank}"
        profile.export_chrome_trace(f"{stem}.trace.json.gz")
        sums = breakdown(marks, profile.key_averages())
        stem.with_suffix(".json").write_text(json.dumps(sums, indent=1), encoding="utf-8")
        stem.with_suffix(".md").write_text(
            page(sums, f"Step {self._index}, rank {self._rank}"), encoding="utf-8"
        )


def breakdown(marks: list[tuple[float, str]], events: Any) -> dict[str, Any]:
    """Seconds by phase, which add up to the step; of these, communication and Python; and operators.

    Args:
        marks: (time in seconds, the phase that begins), in order; the last one ends the step.
        events: torch.profiler's key_averages.
    """
    phases = dict.fromkeys(PHASES, 0.0)
    for (begin, phase), (end, _) in pairwise(marks):
        phases[phase] += end - begin
    total = marks[-1][0] - marks[0][0]
    seconds: dict[str, float] = defaultdict(float)
    calls: dict[str, int] = defaultdict(int)
    for event in events:
        on_device = getattr(event, "self_device_time_total", 0)
        seconds[event.key] += (on_device or event.self_cpu_time_total) / 1e6
        calls[event.key] += event.count
    communication = sum(s for name, s in seconds.items() if name.startswith(COMMUNICATION))
    largest = sorted(seconds, key=lambda name: -seconds[name])[:NUM_OPERATORS]
    return {
        "total_s": total,
        "phases_s": phases,
        "communication_s": communication,
        "python_s": max(0.0, total - sum(seconds.values())),
        "operators": [{"name": n, "seconds": seconds[n], "calls": calls[n]} for n in largest],
    }


def page(sums: dict[str, Any], title: str) -> str:
    """The breakdown in Markdown."""
    total = sums["total_s"] or 1.0

    def row(name: str, seconds: float) -> str:
        return f"| {name} | {seconds:.4f} | {100 * seconds / total:.1f} % |"

    operators = [f"| `{o['name']}` | {o['seconds']:.4f} | {o['calls']} |" for o in sums["operators"]]
    return "\n".join(
        [
            f"# {title}: {sums['total_s']:.4f} s",
            *("", "| phase, forward and backward | seconds | share |", "|---|---|---|"),
            *(row(name, seconds) for name, seconds in sums["phases_s"].items()),
            *("", "| within these | seconds | share |", "|---|---|---|"),
            row("communication", sums["communication_s"]),
            row("Python, and waiting", sums["python_s"]),
            *("", "| operator | seconds by itself | calls |", "|---|---|---|", *operators, ""),
        ]
    )


def _towers(model: Any) -> tuple[list[Any], list[Any]]:
    """(the modules of the vision side that are not inside another one of it, the last block of the tower)."""
    names = [n for n, _ in model.named_modules() if part_of(f"{n}.") in VISION_PARTS]
    outer = [n for n in names if not any(n.startswith(f"{other}.") for other in names)]
    lasts = [layers[-1] for name in outer for layers in _stacks(model.get_submodule(name), name)[-1:]]
    return [model.get_submodule(name) for name in outer], lasts


def _stacks(module: Any, prefix: str) -> list[Any]:
    """Lists of layers inside a module, the longest last; adapters of a projector (`merger`) are none."""
    lists = [
        layers
        for name, layers in module.named_modules()
        if isinstance(layers, torch.nn.ModuleList)
        and len(layers)
        and part_of(f"{prefix}.{name}.0") != "projector"
    ]
    return sorted(lists, key=len)
