"""What holds for every test: no network, no skips but for lack of a GPU, slow proofs apart."""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from object_store import Bucket

NO_NETWORK = Path(__file__).parent / "no_network"
ROOT = Path(__file__).parent.parent

os.environ.update(
    HF_HUB_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    RAY_USAGE_STATS_ENABLED="0",
    VLLM_NO_USAGE_STATS="1",
    WANDB_MODE="offline",
    DO_NOT_TRACK="1",
)
# Files that run beside each other have a core each at most: a second thread would wait for one at every
# barrier, and tests of models take up to fifteen times as long. Ranks and engines are told how many to have.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Ray's workers are at 15 otherwise: beside a busy file a run would take several times as long.
    os.environ.setdefault("RAY_worker_niceness", "0")
# Programs that tests start (the command line, Ray's workers, vLLM's children) are guarded by the same file.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(NO_NETWORK), os.environ.get("PYTHONPATH")]))
_spec = importlib.util.spec_from_file_location("no_network", NO_NETWORK / "sitecustomize.py")
assert _spec is not None and _spec.loader is not None
_spec.loader.exec_module(importlib.util.module_from_spec(_spec))

# A shell that starts the suite with `&` has it ignore Ctrl-C, and all that a test starts inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes is the machine's business, and other jobs'.
settings.register_profile("vlrl", deadline=None)
settings.load_profile("vlrl")

# Where `make vllm-source` has put what tests/tools/test_vllm_guard.py reads.
_USER_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
os.environ.setdefault("VLLM_SOURCES", str(_USER_CACHE / "vlrl" / "vllm-source"))
_CACHE = tempfile.mkdtemp(prefix="vlrl-tests-")
os.environ["XDG_CACHE_HOME"] = _CACHE  # resolved media of tests stay out of the user's cache
for _name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):  # and what they put into the hub's
    os.environ.pop(_name, None)
# What DeepSpeed compiles takes minutes: once for all runs of the tests.
os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(ROOT / ".venv" / "torch_extensions"))
# What vLLM learns of a model's class takes a process that imports all of vLLM: once, not for each worker.
os.environ.setdefault("VLLM_CACHE_ROOT", str(ROOT / ".venv" / "vllm"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from scheduling import Scheduling

    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_unconfigure() -> None:
    shutil.rmtree(_CACHE, ignore_errors=True)


_SLOW = pytest.StashKey[list[pytest.Item]]()


def gpu_missing() -> str | None:
    """Why a test marked `gpu` cannot run here, or None if it can."""
    import torch

    if torch.version.cuda is None:
        return "needs an NVIDIA GPU; this torch is a CPU build"
    return None if torch.cuda.is_available() else "needs an NVIDIA GPU; torch.cuda.is_available() is False"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    named = [argument.split("::", 1)[-1] for argument in config.args if "::" in argument]
    if not config.option.markexpr and not named:  # -m, or naming a test, says what to run
        slow = [item for item in items if item.get_closest_marker("slow")]
        if [Path(argument).resolve() for argument in config.args] == [ROOT / "tests"]:
            config.stash[_SLOW] = slow
        items[:] = [item for item in items if item not in slow]
        config.hook.pytest_deselected(items=slow)
    gpu = [item for item in items if item.get_closest_marker("gpu")]
    if gpu and (reason := gpu_missing()):
        for item in gpu:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown() -> None:
    if _thawed:
        freeze()


_thawed: list[bool] = []
"""An entry for each time that a run in this process has thawed everything, as it does at its end."""
_unfreeze = gc.unfreeze


def _noted_unfreeze() -> None:
    _unfreeze()
    _thawed.append(True)


gc.unfreeze = _noted_unfreeze  # gc.get_freeze_count() counts millions of objects one by one


def freeze() -> None:
    """Have the garbage collector leave alone what there is.

    The collected tests are millions of objects. Each full collection looked at all of them, for 0.5 s:
    tests that ask for one took four times as long as they do alone.
    """
    gc.collect()
    gc.freeze()
    _thawed.clear()


@pytest.fixture(autouse=True)
def ordinary_scheduling() -> Iterator[None]:
    """No test may leave the process a real-time one: its busy children would stop the machine."""
    yield
    policy = os.sched_getscheduler(0)
    if policy != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        pytest.fail(f"the test left the process under scheduling policy {policy}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A skip is a hole in the proof: only a missing GPU is a reason for one."""
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and not item.get_closest_marker("gpu"):
        report.outcome = "failed"
        report.longrepr = f"skipped, and only a test marked gpu may be: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    report = yield
    if report.skipped:
        report.outcome = "failed"
        report.longrepr = f"a whole file was skipped; mark single tests gpu instead: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Qwen2.5-VL that knows the digit task's words; read only."""
    from vlrl.envs.visual.questions.digit_sum import DigitSum
    from vlrl.model.tiny import build_tiny_qwen2_5_vl

    folder = tmp_path_factory.mktemp("model") / "tiny"
    return build_tiny_qwen2_5_vl(folder, DigitSum().corpus(), num_layers=2, vision_depth=2)


@pytest.fixture(scope="session")
def tiny_family(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A family's tiny model by its model type, written when first asked for; read only.

    Its weights are large enough to matter, and no two are alike.
    """
    import torch
    from safetensors.torch import load_file, save_file
    from tiny_families import BUILDERS

    root = tmp_path_factory.mktemp("families")

    @cache
    def build(family: str) -> Path:
        folder = BUILDERS[family](root / family)
        weights, generator = load_file(folder / "model.safetensors"), torch.Generator().manual_seed(0)
        noisy = {k: w + 0.05 * torch.randn(w.shape, generator=generator) for k, w in weights.items()}
        save_file(noisy, folder / "model.safetensors", metadata={"format": "pt"})
        return folder

    return build


@pytest.fixture(scope="session")
def slow_items(pytestconfig: pytest.Config) -> list[pytest.Item] | None:
    """Every slow test, if this run has collected all: to collect them again takes as long as all tests do."""
    return None if pytestconfig.option.keyword else pytestconfig.stash.get(_SLOW, None)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout's root folder."""
    return ROOT


@pytest.fixture(scope="session")
def s3_address() -> Iterator[str]:
    """Address of a real S3 server on this machine, one for all tests."""
    from object_store import s3_server

    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(s3_address: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """An empty bucket of it, which this process's environment leads to."""
    from object_store import new_bucket

    made = new_bucket(s3_address)
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    return made


@pytest.fixture(scope="session")
def local_ray() -> Iterator[None]:
    """One Ray for all tests of the engines, with room for every actor they start; vlrl.cluster joins it."""
    from builders import make_config
    from warm_worker import warm_workers

    from vlrl.cluster import cluster

    with warm_workers(), cluster(make_config(trainer={"num_ranks": 6})):
        yield
