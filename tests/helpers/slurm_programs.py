"""sbatch, srun and scontrol as far as deploy/slurm.sh uses them, for two nodes that are both this machine.

Called under one of those names. They refuse options that the script does not use, take the signals that the
real ones take, and write the job's log and, in the folder $SLURM_FAKE:

    shell.pid   of the batch script, which `scancel --batch` would signal
    requeue     after `scontrol requeue`, until the job starts again; with SLURM_FAKE_ONCE it does not
    left        processes that the script had left when it ended, one a line; empty if none

What they imitate was looked at in SLURM 22.05: an srun that gets SIGTERM kills its step, and a step that ends
leaves no process. SLURM knows a step's processes by their cgroup; here they are the descendants of srun,
since Ray's agents write their titles over the environment that /proc shows.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil

JOB = "SLURM_JOB_ID"
PR_SET_CHILD_SUBREAPER = 36
NODES = ("node1", "node2")

OF_SBATCH = (
    *("--job-name", "--nodes", "--ntasks-per-node", "--gpus-per-node", "--mem", "--time"),
    *("--signal", "--open-mode", "--output"),
)
FLAGS_OF_SBATCH = ("--exclusive", "--requeue")
OF_SRUN = ("--nodes", "--ntasks", "--nodelist", "--cpu-bind")


def parse(options: tuple[str, ...], flags: tuple[str, ...], arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for option in options:
        parser.add_argument(option, required=True)
    for flag in flags:
        parser.add_argument(flag, action="store_true")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args(arguments)


def processes_with(variable: str, value: str) -> dict[int, str]:
    """The command lines of living processes with a variable in their environment, but for this one."""
    found = {}
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and entry.name != str(os.getpid()):
                environment = (entry / "environ").read_bytes().split(b"\0")
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if f"{variable}={value}".encode() in environment and words:
                    found[int(entry.name)] = words
        except OSError:
            continue  # gone
    return found


def kill(processes: dict[int, str]) -> None:
    for pid in processes:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def sbatch(arguments: list[str]) -> int:
    """Run a script until it ends and is not queued again, with its output in its log; the last exit code."""
    script, *rest = arguments
    directives = re.findall(r"^#SBATCH (.+)$", Path(script).read_text(), flags=re.MULTILINE)
    options = parse(OF_SBATCH, FLAGS_OF_SBATCH, directives)
    assert options.signal.startswith("B:USR1@") and options.requeue and options.open_mode == "append"
    assert options.nodes == str(len(NODES))
    folder, job = Path(os.environ["SLURM_FAKE"]), os.environ[JOB]
    environment = {**os.environ, "SLURM_JOB_NODELIST": "node[1-2]", "SLURM_JOB_NUM_NODES": str(len(NODES))}
    log = Path(options.output.replace("%x", options.job_name).replace("%j", job))
    while True:
        with log.open("ab") as output:
            shell = subprocess.Popen(
                ["bash", script, *rest], env=environment, stdout=output, stderr=output, start_new_session=True
            )
            (folder / "shell.pid").write_text(str(shell.pid))
            code = shell.wait()
        until = time.monotonic() + 60  # Ray's processes end by themselves when they lose each other
        while (left := processes_with(JOB, job)) and time.monotonic() < until:
            time.sleep(0.2)
        with (folder / "left").open("a") as file:
            file.writelines(f"{words}\n" for words in left.values())
        kill(left)
        if not (folder / "requeue").exists() or "SLURM_FAKE_ONCE" in os.environ:
            return code
        (folder / "requeue").unlink()


def srun(arguments: list[str]) -> int:
    """Run a command on one node, that is here."""
    options = parse(OF_SRUN, (), arguments)
    assert options.nodes == options.ntasks == "1" and options.nodelist in NODES
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1)  # orphans become children of srun
    signal.signal(signal.SIGTERM, lambda number, frame: end_step())
    environment = {**os.environ, "SLURMD_NODENAME": options.nodelist}
    code = subprocess.Popen(options.command, env=environment, start_new_session=True).wait()
    end_step()
    return code


def end_step() -> None:
    """Kill all descendants, those among them that are just being started included."""
    while found := [p for p in psutil.Process().children(recursive=True) if is_alive(p)]:
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(0.05)


def is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def scontrol(arguments: list[str]) -> int:
    if arguments == ["show", "hostnames", "node[1-2]"]:
        print(*NODES, sep="\n")
        return 0
    assert arguments == ["requeue", os.environ[JOB]], arguments
    (Path(os.environ["SLURM_FAKE"]) / "requeue").touch()
    return 0


if __name__ == "__main__":
    program = {"sbatch": sbatch, "srun": srun, "scontrol": scontrol}[Path(sys.argv[0]).name]
    sys.exit(program(sys.argv[1:]))
