"""What trainer.offload_dir needs is asked for before anything is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_config

from vlrl.errors import ConfigError
from vlrl.trainer import driver
from vlrl.trainer.offload import require_disk_access


def test_no_toolkit_on_a_gpu_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """DeepSpeed raises MissingCUDAException after the model is loaded."""
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    require_disk_access(on_gpu=False)
    with pytest.raises(
        ConfigError, match=r"trainer\.offload_dir: .*CUDA_HOME=.* has no bin/nvcc; install cuda-"
    ):
        require_disk_access(on_gpu=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvcc").touch(0o755)
    require_disk_access(on_gpu=True)


def test_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/no/such/g++")
    with pytest.raises(ConfigError, match=r"/no/such/g\+\+ does not run.*; apt-get install g\+\+ libaio-dev"):
        require_disk_access(on_gpu=False)


def test_a_run_ends_before_a_rank_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "none"))
    monkeypatch.setattr(driver.cluster, "gpu_available", lambda: True)
    monkeypatch.setattr(driver.cluster, "spawn", lambda *_, **__: pytest.fail("a rank was started"))
    options = {"offload_optimizer": True, "offload_dir": tmp_path / "disk"}
    with pytest.raises(ConfigError, match="CUDA toolkit"):
        driver.Trainer(make_config(tmp_path, trainer=options), [])
    assert not (tmp_path / "disk").exists()
