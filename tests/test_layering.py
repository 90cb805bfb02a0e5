"""The architecture, held by reading every import: what may know what (docs/decisions/project.md says why).

A new file goes into the lowest folder whose imports suffice, next to its only importer.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeGuard

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "vlrl"
MAX_LINES = 300
MAX_CONTRACT_LINES = 400  # contracts and config: one place that says everything beats two that hop
MAX_FILES = 15

# Flat in vlrl/: what three folders import, and the pages that put folders together.
CONTRACTS = ("types", "ledger", "batch", "protocols", "errors", "seeds", "rounding", "coordinates", "choices")
PAGES = ("grpo", "sft", "preferences", "raft", "evaluate")

# A file's folder is its layer. Imports go to the same layer or to one above it in this list.
LAYERS = (
    "machine",
    "contracts",
    "registry",
    "foreign",
    "parsing",
    "config",
    "storage",
    "algorithm",
    "packing",
    "model",
    "environment",
    "tracking",
    "process",
    "chat_client",
    "scoring",
    "rollout",
    "processors",
    "placement",
    "cluster",
    "weights",
    "engine",
    "trainer",
    "data",
    "plan",
    "check",
    "run",
    "evaluation",
    "pages",
    "library",
    "envs",
    "rewards",
    "experiments",
    "export",
    "viewer",
    "env_play",
    "chat",
    "cli",
)
# Whoever writes a plug-in registers it; nothing of the framework names one.
PLUGINS = ("envs", "rewards")

# Their interfaces change with every release, so only these know them. (cli/package_checks.py asks for their
# versions through importlib.metadata, which needs no import.)
ENGINE_LIBRARIES = {"ray", "vllm", "deepspeed"}
ADAPTERS = (
    *("vlrl.cluster", "vlrl.engine", "vlrl.trainer", "vlrl.weights", "vlrl.model.lora"),
    "vlrl.model.adapters.nf4",
)
# The contracts are what a plug-in's author imports: quick, and without a framework.
LIGHT = ("contracts", "registry", "config")
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


@cache
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
    folder = "contracts" if parts[1] in CONTRACTS else "pages" if parts[1] in PAGES else parts[1]
    return LAYERS.index(folder) if folder in LAYERS else None


def upward(imports: list[Import]) -> list[str]:
    found = []
    for item in imports:
        source, target = layer_of(item.source), layer_of(item.target)
        if source is not None and target is not None and target > source:
            found.append(
                f"{item.place}: {item.source} ({LAYERS[source]}) imports {item.target} ({LAYERS[target]})"
            )
    return found


def of_plugins(imports: list[Import]) -> list[str]:
    """Imports of a plug-in by the framework."""

    def is_plugin(module: str) -> bool:
        layer = layer_of(module)
        return layer is not None and LAYERS[layer] in PLUGINS

    return [
        f"{item.place}: {item.source} imports {item.target}"
        for item in imports
        if is_plugin(item.target) and layer_of(item.source) is not None and not is_plugin(item.source)
    ]


def plugin_strings(source: str) -> list[tuple[int, str]]:
    """(line, text) of the strings that are the name of a plug-in's module, or of something in it."""
    return [
        (node.lineno, node.value)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(rf"vlrl\.({'|'.join(PLUGINS)})(\.\w+)*(:\w+)?\.?", node.value)
    ]


def test_every_module_has_a_layer() -> None:
    members = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or list(path.glob("**/*.py"))}
    homeless = sorted(members - {"__init__"} - {*LAYERS, *CONTRACTS, *PAGES})
    assert not homeless, f"put these in the lowest folder whose imports suffice: {homeless}"
    assert not sorted({*LAYERS, *CONTRACTS, *PAGES} - members - {"contracts", "pages"})


def test_a_folder_holds_few_files() -> None:
    counts = Counter(file.parent.relative_to(ROOT) for file in source_files())
    crowded = {str(folder): count for folder, count in counts.items() if count > MAX_FILES}
    assert not crowded, f"at most {MAX_FILES} files a folder: {crowded}"


def test_the_framework_imports_no_plugin() -> None:
    found = of_plugins(all_imports())
    assert not found, "ask vlrl.registry for it:\n" + "\n".join(found)


def test_the_framework_names_no_plugin_module() -> None:
    """Neither a string for importlib nor one that tells plug-ins apart by where they lie."""
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text!r}"
        for file in source_files()
        if (layer := layer_of(module_of(file))) is not None
        and LAYERS[layer] not in PLUGINS
        and file != PACKAGE / "registry" / "built_in.py"
        for line, text in plugin_strings(file.read_text())
    ]
    assert not found, "ask vlrl.registry for it:\n" + "\n".join(found)


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


def is_adapter(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in ADAPTERS)


def test_only_engines_know_ray_vllm_and_deepspeed() -> None:
    found = [
        f"{item.place}: imports {item.target}"
        for item in all_imports()
        if item.target.split(".")[0] in ENGINE_LIBRARIES and not is_adapter(item.source)
    ]
    assert not found, f"only {sorted(ADAPTERS)} may import ray, vllm, deepspeed:\n" + "\n".join(found)


def is_light(module: str) -> bool:
    layer = layer_of(module)
    return layer is not None and LAYERS[layer] in LIGHT


def test_contracts_import_no_framework_at_module_level() -> None:
    found = [
        f"{item.place}: imports {item.target}"
        for item in all_imports()
        if item.at_module_level and is_light(item.source) and item.target.split(".")[0] in HEAVY_LIBRARIES
    ]
    assert not found, "a contract imports a framework when it is imported:\n" + "\n".join(found)


def test_contracts_load_no_framework() -> None:
    """The same in fact: not through a third party either."""
    contracts = [module for module in map(module_of, source_files()) if is_light(module)]
    code = f"import sys, {', '.join(contracts)}\n"
    code += f"print(*sorted({HEAVY_LIBRARIES!r} & set(sys.modules)))"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert child.returncode == 0, child.stderr
    assert child.stdout.split() == [], "importing the contracts loads a framework"


@pytest.mark.parametrize("file", source_files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_a_file_is_short_and_named_for_what_it_does(file: Path) -> None:
    assert "util" not in file.stem, f"{file.name}: name it for what it does"
    lines = len(file.read_text().splitlines())
    allowed = MAX_CONTRACT_LINES if is_light(module_of(file)) else MAX_LINES
    assert lines <= allowed, (
        f"{file.relative_to(ROOT)} has {lines} lines, {allowed} are allowed: split it by job"
    )


def test_no_two_programs_or_helpers_have_one_name() -> None:
    """They import one another by plain name, and a test may put all of these folders on the path."""
    folders = ("tests/helpers", "tools", "benchmarks", "benchmarks/gpu")
    names = Counter(file.stem for folder in folders for file in (ROOT / folder).glob("*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_this_test_sees_violations() -> None:
    """Planted imports of every form are found, so that the tests above cannot pass by being blind."""

    def targets(source: str, module: str = "vlrl.seeds", is_package: bool = False) -> list[tuple[str, bool]]:
        return [
            (item.target, item.at_module_level)
            for item in imports_in(source, module, is_package, "planted.py")
        ]

    assert targets("import ray.util as r") == [("ray.util", True)]
    assert targets("from vlrl import grpo, types") == [("vlrl.grpo", True), ("vlrl.types", True)]
    assert targets("from . import grpo") == [("vlrl.grpo", True)]
    assert targets("from .grpo import train") == [("vlrl.grpo", True)]
    assert targets("from ..grpo import train", "vlrl.rewards.group") == [("vlrl.grpo", True)]
    assert targets("from .text import f", "vlrl.rewards", is_package=True) == [("vlrl.rewards.text", True)]
    assert targets("from ..grpo import f", "vlrl.rewards", is_package=True) == [("vlrl.grpo", True)]
    assert targets("def f():\n    import vllm") == [("vllm", False)]
    assert targets("try:\n    import vllm\nexcept ImportError:\n    import ray") == [
        ("vllm", True),
        ("ray", True),
    ]
    assert targets("class A:\n    import torch") == [("torch", True)]
    assert targets("if TYPE_CHECKING:\n    import ray\nelse:\n    import vllm") == [("vllm", True)]
    planted = [
        *imports_in("def f():\n    from vlrl.grpo import train", "vlrl.model.tiny", False, "tiny.py"),
        *imports_in("import vlrl.rewards.text", "vlrl.viewer.page", False, "page.py"),
    ]
    assert upward(planted) == ["tiny.py:2: vlrl.model.tiny (model) imports vlrl.grpo (pages)"]
    assert of_plugins(planted) == ["page.py:1: vlrl.viewer.page imports vlrl.rewards.text"]
    assert plugin_strings('"""See `vlrl.envs.gui`."""\nm = import_module("vlrl.envs.gui")') == [
        (2, "vlrl.envs.gui")
    ]
