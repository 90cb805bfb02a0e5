"""What a person sees while a run goes on: phases, a bar with the time left, one line a step."""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.text import Text

from vlrl.tracking.metrics import is_reward_part

# (metric, heading, format) of the step line, left to right; reward parts come after the reward.
COLUMNS = (
    ("reward/mean", "reward", ".3f"),
    ("sft/loss", "loss", ".4f"),
    ("preference/loss", "loss", ".4f"),
    ("preference/accuracy", "accuracy", ".3f"),
    ("preference/margin", "margin", ".3f"),
    ("completion/num_tokens_mean", "tokens", ".1f"),
    ("policy/kl_reference", "KL", ".1e"),
    ("distillation/reverse_kl", "teacher KL", ".3f"),
    ("critic/explained_variance", "expl. var.", ".3f"),
    ("policy/sampler_mismatch", "mismatch", ".1e"),
    ("policy/entropy", "entropy", ".3f"),
    ("policy/clip_fraction", "clip", ".1%"),
    ("optim/grad_norm", "|grad|", ".3f"),
    ("throughput/tokens_per_s", "tok/s", ".0f"),
    ("time_s/step", "step s", ".2f"),
    ("time_s/generate", "= gen", ".2f"),
    ("time_s/reward", "+ reward", ".2f"),
    ("time_s/train", "+ train", ".2f"),
    ("time_s/sync", "+ sync", ".2f"),
    ("time_s/wait", "+ wait", ".2f"),
)

HEADING_EVERY = 25
"""Lines between repeated headings."""

PLAIN_EVERY_S = 10.0
"""Least time between two steps' lines where there is no terminal: a log, not a display."""

SILENCE_S = 30.0
"""Longest time without a line in a log: then one says which phase is running, and for how long."""

ETA_WINDOW = 50
"""Steps whose median duration the time left is computed from."""


ReadFn: TypeAlias = Callable[[int], list[dict[str, Any]] | None]
"""The rollouts of a step by its number; None if they are not kept."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Functions of a program that a run calls, in its own thread; what one of them raises ends the run.

    Attributes:
        on_step: of a step's number, counted from 0, and its metrics.
        on_rollouts: of a step's number and its rollouts, see `vlrl.tracking.rollouts.records`; of the steps
            that logging.rollouts keeps, before `on_step`.
        on_eval: of the number of updates so far and the held-out metrics.
    """

    on_step: Callable[[int, Mapping[str, float]], object] | None = None
    on_rollouts: Callable[[int, list[dict[str, Any]]], object] | None = None
    on_eval: Callable[[int, Mapping[str, float]], object] | None = None

    def step(self, step: int, values: Mapping[str, float], read: ReadFn | None) -> None:
        """Tell of a step: first of the rollouts, if `read` finds them, then of the metrics."""
        if self.on_rollouts is not None and read is not None and (found := read(step)) is not None:
            self.on_rollouts(step, found)
        if self.on_step is not None:
            self.on_step(step, values)

    def evaluated(self, num_updates: int, metrics: Mapping[str, float]) -> None:
        """Tell of an evaluation after so many updates."""
        if self.on_eval is not None:
            self.on_eval(num_updates, metrics)


class TrainConsole:
    """A run's display; plain lines where there is no terminal, all of it on stderr in JSON mode.

    Example:
        with TrainConsole("digits", total_steps=100) as console:
            console.phase("GRPO", total_steps=100)
            console.step(0, {"reward/mean": 0.4, "time_s/step": 1.2})
            console.note("checkpoint saved")
    """

    def __init__(
        self,
        title: str,
        total_steps: int,
        json_mode: bool = False,
        *,
        callbacks: Callbacks | None = None,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare the display.

        Args:
            title: name of the run.
            total_steps: steps of the bar, until a phase sets others.
            json_mode: leave stdout to the machine-readable result.
            callbacks: what the run tells a program; they come with the console, which only carries them.
            console: where to write; for tests.
            clock: seconds; for tests.
        """
        self._console = console or _own_console(json_mode)
        self._clock = clock
        self._title = title
        self.callbacks = callbacks or Callbacks()
        self.hear: Callable[[str], None] = lambda text: None
        """Called with every line that is printed."""
        self._total = total_steps
        self._phase: tuple[str, float] | None = None
        self._step_times: deque[float] = deque(maxlen=ETA_WINDOW)
        self._last_step_at: float | None = None
        self._last_line_at, self._last_step_line_at = clock(), -math.inf
        self._num_done = 0
        self._ended = threading.Event()
        self._heading, self._lines_since_heading = "", 0
        self._announced = False
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            refresh_per_second=4,
            transient=True,
            disable=not self._console.is_terminal,
            # In JSON mode a print() to stdout is the result, and must not appear on stderr.
            redirect_stdout=not json_mode,
        )
        self._task = self._progress.add_task(title, total=total_steps, left="")

    def announce(self) -> Self:
        """Print the title before libraries are imported, which takes seconds; it is not printed again."""
        if not self._announced:
            self._announced = True
            self._console.print(Text(self._title, style="bold"))
        return self

    def __enter__(self) -> Self:
        self.announce()
        self._progress.start()
        if not self._console.is_terminal:
            threading.Thread(target=self._break_silence, name="console", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._end_phase(failed=kind is not None)
        self._progress.stop()

    def phase(self, name: str, total_steps: int | None = None) -> None:
        """End the phase before, with its seconds, and begin another; `total_steps` starts the bar again."""
        self._end_phase()
        self._phase = (name, self._clock())
        self._last_step_at = self._clock()
        self._last_step_line_at, self._num_done = -math.inf, 0
        self._heading = ""
        self._progress.update(self._task, description=f"{self._title} · {name}")
        if total_steps is not None:
            self._total = total_steps
            self._step_times.clear()
            self._progress.reset(self._task, total=total_steps, left="")
        if not self._console.is_terminal:
            self._print(Text(f"{name} …"))

    def step(self, step: int, values: Mapping[str, float]) -> None:
        """Show the metrics of step number `step`, counted from 0; people are shown numbers from 1 on."""
        now = self._clock()
        self._num_done = step + 1
        if self._last_step_at is not None:
            self._step_times.append(now - self._last_step_at)
        self._last_step_at = now
        left = self.seconds_left(step)
        words = "" if left is None else f"{duration(left)} left"
        self._progress.update(self._task, completed=min(step + 1, self._total), left=words)
        last = step + 1 >= self._total
        if self._console.is_terminal or last or now - self._last_step_line_at >= PLAIN_EVERY_S:
            self._last_step_line_at = now
            self._print_line(step, values, "" if self._console.is_terminal else words)

    def note(self, text: str) -> None:
        """Print a sentence above the bar."""
        self._print(Text(text))

    @property
    def running(self) -> str:
        """The phase that is running; "" between two."""
        phase = self._phase
        return phase[0] if phase is not None else ""

    @property
    def num_done(self) -> int:
        """Steps of the phase that are done."""
        return self._num_done

    def seconds_left(self, step: int) -> float | None:
        """Time the steps after `step` will take, from the median of the latest; None if unknown."""
        if not self._step_times:
            return None
        return statistics.median(self._step_times) * max(0, self._total - step - 1)

    def _print_line(self, step: int, values: Mapping[str, float], words: str) -> None:
        cells = [("step", f"{step + 1}/{self._total}")]
        for name, heading, spec in COLUMNS:
            if name in values:
                cells.append((heading, format(values[name], spec)))
            if name == "reward/mean":
                parts = [n for n in values if is_reward_part(n)]
                cells += [(n.removeprefix("reward/")[:12], f"{values[n]:.3f}") for n in parts]
        widths = [max(len(heading), 6) for heading, _ in cells]
        heading = "  ".join(h.rjust(w) for (h, _), w in zip(cells, widths, strict=True))
        if heading != self._heading or self._lines_since_heading >= HEADING_EVERY:
            self._heading, self._lines_since_heading = heading, 0
            self._print(Text(heading, style="dim"))
        line = Text("  ".join(v.rjust(w) for (_, v), w in zip(cells, widths, strict=True)))
        if words:
            line.append(f"  {words}")
        if failures := values.get("failures/reward"):
            line.append(f"  {failures:.0f} could not be scored", style="yellow")
        self._lines_since_heading += 1
        self._print(line)

    def _break_silence(self) -> None:
        """Run as a thread: say which phase is running when nothing was said for SILENCE_S."""
        while not self._ended.wait(self._silence_left()):
            self.break_silence()

    def _silence_left(self) -> float:
        return max(0.1, SILENCE_S - (self._clock() - self._last_line_at))

    def break_silence(self) -> None:
        """Say which phase is running and for how long, if nothing was said for SILENCE_S."""
        phase, now = self._phase, self._clock()
        if phase is None or now - self._last_line_at < SILENCE_S:
            return
        name, start = phase
        if self._num_done and self._last_step_at is not None:
            name, start = f"{name}, step {self._num_done + 1}/{self._total}", self._last_step_at
        self._print(Text(f"… {name}, for {duration(now - start)}"))

    def _end_phase(self, failed: bool = False) -> None:
        if self._phase is None:
            return
        name, start = self._phase
        self._phase = None
        mark, style = ("✗", "red") if failed else ("✓", "green")
        self._print(Text.assemble((mark, style), f" {name}  {duration(self._clock() - start)}"))

    def _print(self, text: Text) -> None:
        self._last_line_at = self._clock()
        self.hear(text.plain)
        # Soft wrap: in a log a line stays one line, whatever width rich guesses.
        self._progress.console.print(text, soft_wrap=True)


def _own_console(json_mode: bool) -> Console:
    """Rich's console; for a notebook plain lines, as for a log: its display of a bar needs ipywidgets."""
    found = Console(stderr=json_mode, highlight=False)
    if not found.is_jupyter:
        return found
    return Console(stderr=json_mode, highlight=False, force_jupyter=False, force_terminal=False)


def duration(seconds: float, digits: int = 1) -> str:
    """Seconds for people: 4.2 s, 3 min 05 s, 2 h 10 min, 3 d 4 h; `digits` after the point below a minute."""
    if round(seconds, 1) < 60:
        return f"{seconds:.{digits}f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"
