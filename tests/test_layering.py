"""The architecture, held by reading every import: what may know what (docs/decisions.md says why).

A new module in vlrl/ is added to LAYERS below, in the lowest layer that can hold it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "vlrl"
MAX_LINES = 300
MAX_CONTRACT_LINES = 400  # contracts and config: one place that says everything beats two that hop

# Imports go downwards in this list: a module may import from its own layer and from those above it here.
LAYERS: dict[str, set[str]] = {
    "contracts": {
        "errors",
        "rounding",
        "seeds",
        "types",
        "ledger",
        "batch",
        "protocols",
        "section",
        "strict_yaml",
        "objects",
        "async_options",
        "options",
        "option_names",
        "data_options",
        "engine_options",
        "episode_options",
        "memory_options",
        "config",
        "installed",
        "registry",
        "metrics",
    },
    "pure functions": {
        "mask",
        "advantage",
        "credit",
        "loss",
        "off_policy",
        "ordered",
        "lags",
        "filters",
        "timeline",
        "clock",
        "prefix_tree",
        "layout",
        "pack",
        "tree_attention",
        "sequence_parallel",
        "attention",
        "cpu_products",
        "logprobs",
        "token_logprobs",
        "model_parts",
        "empty_model",
        "feature_cache",
        "step_features",
        "schedule",
        "save_interval",
        "concurrency",
        "stats",
        "learning_signal",
        "published",
        "trouble",
        "listening",
    },
    "plug-ins and data flow": {
        *("processors", "rewards", "envs"),
        *(
            "data",
            "run_data",
            "session",
            "rollout",
            "buffer",
            "collector",
            "records",
            "sample_log",
            "tiny",
            "console",
            "events",
            "file_digests",
            "interrupts",
            "json_stdout",
            "event_loop",
            "run_lock",
            "config_history",
            "media_files",
        ),
        *(
            "env_host",
            "env_serve",
            "endpoint",
            "agent",
            "agent_episode",
            "worker_process",
            "context",
            "episode",
            "episodes",
            "branch_points",
            "lockstep",
            "stragglers",
            "setting",
            "balance",
            "self_play",
        ),
    },
    "engines": {
        *(
            "cluster",
            "generator",
            "generator_bans",
            "trainer",
            "trainer_rank",
            "trainer_model",
            "trainer_lora",
            "trainer_offload",
            "trainer_profile",
            "step_result",
            "cached_pictures",
            "weights",
            "segment_files",
            "checkpoint",
            "shared_media",
            "engine",
            "engine_adapter",
            "engine_arguments",
            "one_adapter",
            "replicas",
            "weight_group",
            "weight_places",
            "weight_receiver",
            "weight_sender",
        ),
    },
    "pages": {
        "run",
        "summary",
        "recovery",
        "resume",
        "parity",
        "grpo",
        "sft",
        "evaluate",
        "evaluation_files",
        "plan",
        "starter",
        "preflight",
        "reward_check",
        "env_check",
    },
    "command line": {"cli", "viewer", "env_play"},
}
LAYER_NAMES = list(LAYERS)

# Their interfaces change with every release, so only these files know them. (cli/doctor.py asks for versions
# through importlib.metadata, which needs no import.)
ENGINE_LIBRARIES = {"ray", "vllm", "deepspeed"}
ADAPTERS = {
    f"vlrl.{name}"
    for name in (
        "cached_pictures",
        "cluster",
        "engine",
        "engine_adapter",
        "generator_bans",
        "trainer_lora",
        "trainer_model",
        "trainer_offload",
        "trainer_rank",
        "weight_receiver",
    )
}
# The contracts are what a plug-in's author imports: quick, and without a framework.
HEAVY_LIBRARIES = {"torch", "torchvision", "transformers", *ENGINE_LIBRARIES}


@dataclass(frozen=True)
class Import:
    """One import statement: who imports what, where, and whether it runs when the module is imported."""

    source: str
    target: str
    place: str
    at_module_level: bool


def source_files() -> list[Path]:
    """Every Python file of the package; glob follows no symlinks, so the three linked folders are named."""
    folders = [PACKAGE, *(PACKAGE / name for name in ("processors", "rewards", "envs"))]
    return sorted({file for folder in folders for file in folder.rglob("*.py")})


def module_of(file: Path) -> str:
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_type_checking(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports_in(source: str, module: str, is_package: bool, place: str) -> Iterator[Import]:
    """The imports of one file, functions included, `if TYPE_CHECKING` left out."""

    def target_names(node: ast.Import | ast.ImportFrom) -> list[str]:
        if isinstance(node, ast.Import):
            return [alias.name for alias in node.names]
        base = node.module or ""
        if node.level:
            package = module.split(".") if is_package else module.split(".")[:-1]
            base = ".".join([*package[: len(package) - node.level + 1], *filter(None, [base])])
        return [f"{base}.{alias.name}" for alias in node.names] if base == "vlrl" else [base]

    def walk(node: ast.AST, at_module_level: bool) -> Iterator[Import]:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in target_names(node):
                yield Import(module, name, f"{place}:{node.lineno}", at_module_level)
        inner = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        children = node.orelse if is_type_checking(node) else ast.iter_child_nodes(node)
        for child in children:
            yield from walk(child, at_module_level and not inner)

    yield from walk(ast.parse(source), True)


def all_imports() -> list[Import]:
    found = []
    for file in source_files():
        place = str(file.relative_to(ROOT))
        found += imports_in(file.read_text(), module_of(file), file.name == "__init__.py", place)
    return found


def layer_of(module: str) -> int | None:
    """Index into LAYERS, or None for vlrl itself and for what is not vlrl's."""
    parts = module.split(".")
    if parts[0] != "vlrl" or len(parts) == 1 or parts[1].startswith("__"):
        return None
    for index, members in enumerate(LAYERS.values()):
        if parts[1] in members:
            return index
    return None


def upward(imports: list[Import]) -> list[str]:
    found = []
    for item in imports:
        source, target = layer_of(item.source), layer_of(item.target)
        if source is not None and target is not None and target > source:
            above, below = LAYER_NAMES[source], LAYER_NAMES[target]
            found.append(f"{item.place}: {item.source} ({above}) imports {item.target} ({below})")
    return found


def test_every_module_has_a_layer() -> None:
    members = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    homeless = sorted(members - {"__init__", "__main__"} - set().union(*LAYERS.values()))
    assert not homeless, f"add to LAYERS in tests/test_layering.py, in the lowest layer that fits: {homeless}"


def test_imports_go_one_way() -> None:
    found = upward(all_imports())
    assert not found, "imports must go from later layers to earlier ones:\n" + "\n".join(found)


def test_no_cycle_between_modules() -> None:
    """Two modules that import each other are one module in two files."""
    modules = {module_of(file) for file in source_files()}
    graph: dict[str, set[str]] = {module: set() for module in modules}
    for item in all_imports():
        if item.at_module_level and item.target in modules and item.target != item.source:
            graph[item.source].add(item.target)
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> None:
        assert module not in path, "import cycle: " + " -> ".join([*path[path.index(module) :], module])
        if module not in done:
            for target in sorted(graph[module]):
                visit(target, [*path, module])
            done.add(module)

    for module in sorted(modules):
        visit(module, [])


def test_only_engines_know_ray_vllm_and_deepspeed() -> None:
    found = [
        f"{item.place}: imports {item.target}"
        for item in all_imports()
        if item.target.split(".")[0] in ENGINE_LIBRARIES and item.source not in ADAPTERS
    ]
    assert not found, f"only {sorted(ADAPTERS)} may import ray, vllm, deepspeed:\n" + "\n".join(found)


def test_contracts_import_no_framework_at_module_level() -> None:
    found = [
        f"{item.place}: imports {item.target}"
        for item in all_imports()
        if item.at_module_level
        and layer_of(item.source) == 0
        and item.target.split(".")[0] in HEAVY_LIBRARIES
    ]
    assert not found, "a contract imports a framework when it is imported:\n" + "\n".join(found)


def test_contracts_load_no_framework() -> None:
    """The same in fact: not through a third party either."""
    contracts = [name for name in sorted(LAYERS["contracts"]) if (PACKAGE / f"{name}.py").exists()]
    code = f"import sys, {', '.join(f'vlrl.{name}' for name in contracts)}\n"
    code += f"print(*sorted({HEAVY_LIBRARIES!r} & set(sys.modules)))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == [], "importing the contracts loads a framework"


@pytest.mark.parametrize("file", source_files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_is_short_and_named_for_what_it_does(file: Path) -> None:
    assert "util" not in file.stem, f"{file.name}: name it for what it does"
    lines = len(file.read_text().splitlines())
    allowed = MAX_CONTRACT_LINES if layer_of(module_of(file)) == 0 else MAX_LINES
    assert lines <= allowed, (
        f"{file.relative_to(ROOT)} has {lines} lines, {allowed} are allowed: split it by job"
    )


def test_this_test_sees_violations() -> None:
    """Planted imports of every form are found, so that the tests above cannot pass by being blind."""

    def targets(source: str, module: str = "vlrl.mask", is_package: bool = False) -> list[tuple[str, bool]]:
        return [
            (item.target, item.at_module_level)
            for item in imports_in(source, module, is_package, "planted.py")
        ]

    assert targets("import ray.util as r") == [("ray.util", True)]
    assert targets("from vlrl import grpo, types") == [("vlrl.grpo", True), ("vlrl.types", True)]
    assert targets("from . import grpo") == [("vlrl.grpo", True)]
    assert targets("from .grpo import train") == [("vlrl.grpo", True)]
    assert targets("from ..grpo import train", "vlrl.rewards.text") == [("vlrl.grpo", True)]
    assert targets("from .text import f", "vlrl.rewards", is_package=True) == [("vlrl.rewards.text", True)]
    assert targets("from ..grpo import f", "vlrl.rewards", is_package=True) == [("vlrl.grpo", True)]
    assert targets("def f():\n    import vllm") == [("vllm", False)]
    assert targets("try:\n    import vllm\nexcept ImportError:\n    import ray") == [
        ("vllm", True),
        ("ray", True),
    ]
    assert targets("class A:\n    import torch") == [("torch", True)]
    assert targets("if TYPE_CHECKING:\n    import ray\nelse:\n    import vllm") == [("vllm", True)]
    planted = list(
        imports_in("def f():\n    from vlrl.grpo import train", "vlrl.mask", False, "vlrl/mask.py")
    )
    assert upward(planted) == ["vlrl/mask.py:2: vlrl.mask (pure functions) imports vlrl.grpo (pages)"]
