"""A side's process as the driver sees it, and who used the cores meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Self

from cases import Case
from step_job import BenchmarkError, Job
from step_memory import sample_during

from vlrl.process.heap import REUSED_MEMORY

HERE = Path(__file__).resolve().parent
TRAINER_PROCESS = {"vlrl": "ray::Trainer"}
"""How the name of the process that trains begins, on sides where it is not the one that was started."""


class Side:
    """One side's process: started once, told to run blocks, asleep in between."""

    def __init__(self, name: str, python: Path, job: Job) -> None:
        self.name = name
        self._log = Path(job.folder) / f"{name}.log"
        environment = {
            **os.environ,
            "OMP_NUM_THREADS": str(job.threads),
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
        }
        if name == "packed":
            environment |= REUSED_MEMORY  # as a run starts its ranks on a CPU
        if job.rows:  # whole steps are compared on the CPU
            environment["CUDA_VISIBLE_DEVICES"] = ""
        command = [str(python), str(HERE / f"{name}_step.py"), str(Path(job.folder) / "job.json")]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                cwd=HERE.parent,
                start_new_session=True,
            )
        self.start_up: dict[str, float] = self._receive()["start_up"]

    @property
    def pid(self) -> int:
        """Process id of the process that was started."""
        return self._process.pid

    def run(self, steps: int) -> dict[str, Any]:
        """Run a block; what it measured."""
        _pipe(self._process.stdin).write(f"{steps}\n")
        _pipe(self._process.stdin).flush()
        block: dict[str, Any] = self._receive()["block"]
        return block

    def reset_peaks(self) -> None:
        """Peaks of memory are of what follows: neither of loading nor of the first steps."""
        for pid in self.family():
            try:
                Path(f"/proc/{pid}/clear_refs").write_text("5")
            except OSError:  # it ended meanwhile
                continue

    def peaks(self) -> dict[str, int]:
        """Most resident bytes of each of its processes since then, by name and number.

        Pages that processes share, libraries above all, count in each of them.
        """
        found: dict[str, int] = {}
        for pid in self.family():
            try:
                lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            except OSError:
                continue
            fields = dict(line.split(":", 1) for line in lines)
            if "VmHWM" in fields:
                found[f"{fields['Name'].strip()} {pid}"] = int(fields["VmHWM"].split()[0]) * 1024
        return found

    def prepare(self, case: Case) -> dict[str, float]:
        """Tell a side that only trains its next sizes; slots that a step computes, and operations."""
        _pipe(self._process.stdin).write(json.dumps(asdict(case)) + "\n")
        _pipe(self._process.stdin).flush()
        sizes: dict[str, float] = self._receive()["prepared"]
        return sizes

    def memory(self, work: Callable[[], Any]) -> dict[str, Any]:
        """Private memory at its peak while `work` runs blocks of this side; see step_memory.py."""
        return sample_during(work, self.family).as_dict(self._trainer())

    def _trainer(self) -> int:
        wanted = TRAINER_PROCESS.get(self.name)
        names = self._names() if wanted else {}
        return next((pid for pid, name in names.items() if name.startswith(str(wanted))), self.pid)

    def _names(self) -> dict[int, str]:
        found = {}
        for pid in self.family():
            try:
                found[pid] = Path(f"/proc/{pid}/comm").read_text().strip()
            except OSError:
                continue
        return found

    def family(self) -> set[int]:
        """Its process and all descendants of that."""
        return CpuTimes.now().family(self.pid)

    def close(self) -> None:
        """Let it end by itself, then make sure."""
        _pipe(self._process.stdin).close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _receive(self) -> dict[str, Any]:
        line = _pipe(self._process.stdout).readline()
        if not line:
            tail = "".join(self._log.read_text(errors="replace").splitlines(keepends=True)[-15:])
            raise BenchmarkError(f"{self.name}'s process ended (its log's last lines):\n{tail}")
        message: dict[str, Any] = json.loads(line)
        return message


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise BenchmarkError("the process was started without pipes")
    return stream


@dataclass(frozen=True)
class CpuTimes:
    """CPU seconds so far: of every process, its ended children included, and of this process's cores."""

    seconds: dict[int, float]
    parents: dict[int, int]
    busy: float

    @classmethod
    def now(cls) -> Self:
        """Read them from /proc; nothing where there is none."""
        ticks_per_second = os.sysconf("SC_CLK_TCK")
        seconds: dict[int, float] = {}
        parents: dict[int, int] = {}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:  # it ended meanwhile
                continue
            pid = int(stat.parent.name)
            parents[pid] = int(fields[1])
            seconds[pid] = sum(map(int, fields[11:15])) / ticks_per_second
        total = Path("/proc/stat")
        busy = busy_ticks(total.read_text(), os.sched_getaffinity(0)) if total.exists() else 0
        return cls(seconds, parents, busy / ticks_per_second)

    def family(self, root_pid: int) -> set[int]:
        """A process and all its descendants."""
        family = {root_pid}
        added = True
        while added:
            more = {pid for pid, parent in self.parents.items() if parent in family} - family
            added = bool(more)
            family |= more
        return family

    def of(self, root_pid: int) -> float:
        """Seconds of a process and all its descendants."""
        return sum(self.seconds.get(pid, 0.0) for pid in self.family(root_pid))

    def of_others(self, root_pid: int) -> float:
        """Seconds of these cores that went to anything but this process and its descendants."""
        return self.busy - self.of(root_pid)


def busy_ticks(stat: str, cores: Iterable[int]) -> int:
    """Ticks that /proc/stat says some cores worked: all its columns up to steal but idle and iowait."""
    wanted = {f"cpu{core}" for core in cores}
    lines = [line.split() for line in stat.splitlines()]
    return sum(sum(map(int, values[:3] + values[5:8])) for name, *values in lines if name in wanted)
