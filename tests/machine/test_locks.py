"""The facts about the locks are of these locks."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from vlrl.machine.locks import lock_facts

TOOLS = Path(__file__).parent.parent.parent / "tools"


@pytest.fixture(scope="module")
def lock() -> ModuleType:
    """tools/lock.py."""
    sys.path.insert(0, str(TOOLS))  # programs, not a package: they import one another by plain name
    spec = importlib.util.spec_from_file_location("lock", TOOLS / "lock.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", ["cpu", "cuda", "trl", "ecosystem"])
def test_they_are_of_the_lock_as_it_is(lock: ModuleType, kind: str) -> None:
    facts = lock_facts(kind)
    assert facts.digest == lock.digest(lock.read_lock(kind)), f"write it again: tools/lock.py {kind}"
    assert facts.pythons == list(lock.PYTHONS)


def test_the_gpu_set_is_of_one_cuda(lock: ModuleType) -> None:
    """What torch needs of CUDA's libraries is of the version that the driver is checked for."""
    pins = lock.read_lock("cuda")
    assert pins["nvidia-cuda-runtime"].version.startswith(lock_facts("cuda").cuda)
    assert pins["torch"].version == "2.13.0"


def test_vllm_wants_an_older_setuptools_on_python_3_12(lock: ModuleType) -> None:
    for kind in ("cpu", "cuda"):
        assert int(lock.read_lock(kind)["setuptools"].version.partition(".")[0]) < 81


def test_a_package_that_some_pythons_need_keeps_its_marker(lock: ModuleType, tmp_path: Path) -> None:
    text = 'a==1\naudioop-lts==0.2.2 ; python_version == "3.13"\ntorch===2.13.0\n# b==2\n'
    (tmp_path / "x.lock").write_text(text)
    pins = lock.read_pins(tmp_path / "x.lock")
    assert pins["audioop-lts"] == ("0.2.2", 'python_version == "3.13"')
    assert lock.lines_of(pins) == text.replace("===", "==").replace("# b==2\n", "")
    assert lock.needed(pins, "3.13") == {"a", "audioop-lts", "torch"}
    assert lock.needed(pins, "3.12") == {"a", "torch"}
