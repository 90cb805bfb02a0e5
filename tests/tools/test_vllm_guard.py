"""What vlrl relies on in vLLM is there, in the installed build and in the source of the pinned CUDA build.

The CUDA build's source is read where `make vllm-source` has fetched it.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))  # programs, not a package

from python_source import Package
from vllm_guard import findings, installed, unlike
from vllm_source import cache_folder
from vllm_uses import LOADERS

from vlrl.cli.package_checks import TESTED

CUDA_BUILD = cache_folder() / TESTED["vllm"]
BUILDS = [installed(), *([CUDA_BUILD] if CUDA_BUILD.exists() else [])]


@pytest.mark.parametrize("source", BUILDS, ids=lambda source: source.name)
def test_all_is_there_and_the_same_in_both_builds(source: Path) -> None:
    """The installed build is that for CPUs; being the same, what tests run of it speaks for the other one."""
    assert findings(Package(source, "vllm")) == []
    assert unlike(Package(installed(), "vllm"), source) == []


@pytest.fixture(scope="module")
def used() -> list[Path]:
    """The files of the installed vLLM that the guard reads, and the loaders'."""
    vllm = Package(installed(), "vllm")
    findings(vllm)
    return sorted(vllm.files.union(*((installed() / "vllm" / loader).rglob("*.py") for loader in LOADERS)))


Edit = Callable[[str, str, str], Path]


@pytest.fixture
def edited(used: list[Path], tmp_path: Path) -> Edit:
    """A function that replaces text in a file of a copy of vLLM, and gives the copy's folder."""

    def edit(file: str, old: str, new: str) -> Path:
        for source in used:
            target = tmp_path / source.relative_to(installed())
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        target = tmp_path / "vllm" / file
        text = target.read_text()
        assert old in text, "this vLLM has it no more: write the test again"
        target.write_text(text.replace(old, new))
        return tmp_path

    return edit


LLM_ENGINE, V2_RUNNER = "v1/engine/llm_engine.py", "v1/worker/gpu/model_runner.py"
V1_LOGITS, V2_LOGITS = (f"{loader}/interface.py" for loader in LOADERS)

CHANGES = {
    "method": (LLM_ENGINE, "def add_request(", "def put_request(", "LLMEngine has no add_request"),
    "parameter": (
        LLM_ENGINE,
        "reset_running_requests",
        "preempt",
        "unexpected keyword argument 'reset_running_requests'",
    ),
    "attribute": (LLM_ENGINE, "self.renderer = ", "self.render = ", "LLMEngine has no renderer"),
    "field": ("sampling_params.py", "flat_logprobs: bool", "flat: bool", "SamplingParams(...) does not fit"),
    "engine argument": (
        "engine/arg_utils.py",
        "worker_extension_cls: str",
        "worker_extension: str",
        "EngineArgs has no worker_extension_cls",
    ),
    "import": (
        "lora/peft_helper.py",
        "class PEFTHelper",
        "class Helper",
        "vllm.lora.peft_helper has no PEFTHelper",
    ),
    "class": (
        "outputs.py",
        "class WeightVersionSpan",
        "class Span",
        "vllm.outputs.WeightVersionSpan is gone",
    ),
    "runner V1": (
        "v1/worker/gpu_model_runner.py",
        "def reload_weights",
        "def reload",
        "vllm.v1.worker.gpu_model_runner.GPUModelRunner has no reload_weights",
    ),
    "runner V2": (
        V2_RUNNER,
        "weights_iterator: Iterable",
        "weights: Iterable",
        "vllm.v1.worker.gpu.model_runner.GPUModelRunner.reload_weights(...) does not fit",
    ),
    "logits processor V1": (
        V1_LOGITS,
        "def apply(self, logits: torch.Tensor)",
        "def apply(self, logits, rows, batch)",
        "MediaTokenBan.apply cannot be called as vllm.v1.sample.logits_processor",
    ),
    "logits processor V2": (
        V2_LOGITS,
        "    @abstractmethod\n",
        "    @abstractmethod\n    def remove(self): ...\n\n    @abstractmethod\n",
        "MediaTokenBan lacks remove, which vllm.v1.worker.gpu.sample",
    ),
    "worker's own name": (
        "v1/worker/gpu_worker.py",
        "self.use_v2_model_runner = ",
        "self._segment = ",
        "vllm.v1.worker.gpu_worker.Worker has _segment of its own, and so has",
    ),
    "worker's attribute": (
        "v1/worker/worker_base.py",
        "self.distributed_init_method = ",
        "self.init_method = ",
        "Worker has no distributed_init_method, which weight_receiver.py:WeightReceiver reads",
    ),
    "replaced function": (
        "multimodal/utils.py",
        "    uses_mrope: bool = False,\n) -> list[MultiModalFeatureSpec]",
        "    keep: bool = False,\n) -> list[MultiModalFeatureSpec]",
        "strip_covered_mm_data has other parameters now",
    ),
    "replaced for nobody": (
        "v1/core/sched/output.py",
        "mm_features=strip_covered_mm_data(",
        "mm_features=list(",
        "vllm.v1.core.sched.output no longer calls strip_covered_mm_data",
    ),
    "replaced not everywhere": (
        "v1/core/sched/scheduler.py",
        "\nlogger = ",
        "\nfrom vllm.multimodal.utils import strip_covered_mm_data\nstrip_covered_mm_data([], 1)\nlogger =",
        "vllm.v1.core.sched.scheduler calls strip_covered_mm_data too",
    ),
    "replaced method": (
        "lora/layers/base_linear.py",
        "self.punica_wrapper.add_lora_linear(",
        "self.punica_wrapper.add_lora_linear(1, ",
        "calls add_lora_linear otherwise than cpu/lora_products.py",
    ),
    "environment": (
        "envs.py",
        '"VLLM_CPU_KVCACHE_SPACE"',
        '"VLLM_KVCACHE"',
        "vLLM has no VLLM_CPU_KVCACHE_SPACE",
    ),
}
"""What changed → a file of vLLM, a text in it, another in its place, and words of what the guard says."""


@pytest.mark.parametrize(("file", "old", "new", "words"), CHANGES.values(), ids=CHANGES)
def test_each_kind_of_change_is_found(edited: Edit, file: str, old: str, new: str, words: str) -> None:
    found = findings(Package(edited(file, old, new), "vllm"))
    assert any(words in line for line in found), found


def test_a_copy_without_a_change_is_in_order(edited: Edit) -> None:
    copy = edited("envs.py", "import os", "import os")
    assert findings(Package(copy, "vllm")) == []
    assert unlike(Package(installed(), "vllm"), copy) == []


def test_another_loader_is_found(edited: Edit) -> None:
    copy = edited(f"{LOADERS[1]}/loader.py", "import importlib\n", "import importlib\n\n")
    (found,) = unlike(Package(installed(), "vllm"), copy)
    assert found.startswith(f"vllm/{LOADERS[1]}/loader.py differs from")


def test_a_folder_without_vllm(tmp_path: Path) -> None:
    assert findings(Package(tmp_path, "vllm")) == [f"{tmp_path} holds no vllm/"]
