"""The bundle for a GPU machine without network: small parts, checked when they are unpacked."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from requirements import closure

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))  # behind the tests' helpers
gpu_bundle = importlib.import_module("gpu_bundle")


@given(st.dictionaries(st.text(min_size=1, max_size=4), st.integers(0, 50)), st.integers(50, 120))
def test_parts_hold_every_file_once_and_no_more_than_they_may(sizes: dict[str, int], limit: int) -> None:
    parts = gpu_bundle.divide(sizes, limit)
    assert sorted(name for part in parts for name in part) == sorted(sizes)
    assert all(sum(sizes[name] for name in part) <= limit for part in parts)
    assert all(parts), "an empty part"


def test_a_file_larger_than_a_part_is_refused() -> None:
    with pytest.raises(gpu_bundle.BundleError, match=r"large\.whl has 2,000 bytes, a part 1,000 at most"):
        gpu_bundle.divide({"large.whl": 2000}, 1000)


LIMIT = 40_000


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """Three wheels of 20 kB and a repository whose check.py says what it was given, in parts of 40 kB."""
    content, repository = tmp_path / "content", tmp_path / "check.py"
    (content / "wheels").mkdir(parents=True)
    for number in range(3):
        (content / "wheels" / f"w{number}.whl").write_bytes(bytes([number]) * 20_000)
    repository.write_text("import os, sys\nprint(sys.argv[1:], os.environ['PYTHONPATH'])\n")
    with tarfile.open(content / gpu_bundle.REPOSITORY, "w:gz") as tar:
        tar.add(repository, "benchmarks/gpu/check.py")
    gpu_bundle.write_bundle(content, tmp_path / "bundle", LIMIT)
    return tmp_path / "bundle"


def run(bundle: Path, *stages: str) -> subprocess.CompletedProcess[str]:
    """run.sh with a Python whose pip notes its wheels."""
    python = bundle.parent / "python"
    python.write_text(f'#!/bin/sh\n[ "$2" = pip ] && echo "$@" || exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(python), "WORK": str(bundle.parent / "work")}
    command = ["sh", str(bundle / "run.sh"), *stages]
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def test_what_was_packed_is_unpacked_and_run(bundle: Path) -> None:
    parts = sorted(bundle.glob("part_*.tar"))
    assert len(parts) == 3
    assert all(part.stat().st_size <= LIMIT for part in parts)
    child = run(bundle, "facts")
    assert child.returncode == 0, child.stderr
    installed, ran = child.stdout.splitlines()
    work = bundle.parent / "work"
    assert [word for word in installed.split() if word.endswith(".whl")] == [
        str(work / "wheels" / f"w{number}.whl") for number in range(3)
    ]
    assert (work / "wheels" / "w2.whl").read_bytes() == b"\2" * 20_000
    assert ran.startswith(f"['--out', '{work}/results', 'facts'] {work}/vlrl:{work}/site:")
    assert "'facts', 'attention', 'agreement', 'training'" in run(bundle).stdout, (
        "again, and with the default"
    )


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_damaged_part_is_not_unpacked(bundle: Path, damage: str) -> None:
    part = bundle / "part_2.tar"
    if damage == "changed":
        part.write_bytes(part.read_bytes()[:-1] + b"x")
    else:
        part.unlink()
    child = run(bundle)
    assert child.returncode != 0
    assert "part_2.tar" in child.stdout + child.stderr
    assert not (bundle.parent / "work").exists()


def test_nothing_that_the_wheels_need_is_missing() -> None:
    """That the stages import nothing else is shown by tests/benchmarks/test_gpu_check.py."""
    assert closure(*gpu_bundle.CARRIED) <= closure(*gpu_bundle.IMAGE) | set(gpu_bundle.CARRIED)


def test_versions_are_those_of_the_cuda_lock(root: Path) -> None:
    lock = (root / "requirements" / "cuda.lock").read_text().splitlines()
    pins: list[Any] = gpu_bundle.pins()
    assert {pin.partition("==")[0] for pin in pins} == set(gpu_bundle.CARRIED)
    assert set(pins) <= set(lock)
