"""What vlrl relies on in vLLM, held against vLLM's source: names, signatures, base classes, attributes.

    python tools/vllm_guard.py [FOLDER]     FOLDER holds vllm/; without it the installed vLLM is read

What vlrl uses is read from vlrl/engine/ itself; tools/vllm_uses.py adds what its source does not say. Nothing
of vLLM is imported, so any version for any hardware can be read.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from python_source import Definition, FunctionNode, Module, Package, misfit, parse
from vllm_uses import (
    ARGUMENTS,
    CLASSES,
    ENVIRONMENT,
    LOADERS,
    MIXED_IN,
    PATHS,
    REPLACED_METHODS,
    SUBCLASSES,
)

ROOT = Path(__file__).resolve().parent.parent
ENGINE = ROOT / "vlrl" / "engine"


def findings(vllm: Package) -> list[str]:
    """What vlrl relies on and this vLLM does not have; empty if all fits."""
    if vllm.module("vllm") is None:
        return [f"{vllm.folder} holds no vllm/"]
    users = [
        file for file in sorted((ROOT / "vlrl").rglob("*.py")) if "vllm" in file.read_text(encoding="utf-8")
    ]
    found = [line for file in users for line in of_file(file, vllm)]
    for ours, theirs in SUBCLASSES.items():
        found += [line for path in theirs for line in of_subclass(ours, path, vllm)]
    for ours, theirs in MIXED_IN.items():
        found += [line for path in theirs for line in of_mixin(ours, path, vllm)]
    for ours, path in REPLACED_METHODS.items():
        found += of_replaced_method(ours, path, vllm)
    for ours, path in ARGUMENTS.items():
        found += of_arguments(ours, path, vllm)
    found += [f"{path} is gone" for path in PATHS if vllm.find(path) is None]
    found += of_environment(vllm)
    return list(dict.fromkeys(found))


def of_file(file: Path, vllm: Package) -> Iterator[str]:
    """Imports of vLLM in a file, calls of what it imports, replaced functions, and uses of CLASSES."""
    tree, imported = parse(file), dict[str, Definition]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "vllm":
            for alias in node.names:
                definition = vllm.find(f"{node.module}.{alias.name}")
                if definition is None:
                    yield f"{place(file, node)}: {node.module} has no {alias.name}"
                else:
                    imported[alias.asname or alias.name] = definition
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and (definition := imported_definition(node.func, imported)) is not None
        ):
            yield from of_call(file, node, definition, ast.unparse(node.func))
        if isinstance(node, ast.Attribute):
            root = node.value.id if isinstance(node.value, ast.Name) else ""
            if root in imported and imported[root].member(node.attr) is None:
                yield f"{place(file, node)}: {root} has no {node.attr}"
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
            yield from of_replaced_function(file, tree, node, imported)
    if file.parent == ENGINE:
        yield from of_expressions(file, tree, CLASSES.get(file.name, {}), vllm)


def imported_definition(node: ast.expr, imported: Mapping[str, Definition]) -> Definition | None:
    """What a name or an attribute of one stands for, if it was imported from vLLM."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in imported:
        return imported[node.value.id].member(node.attr)
    return imported.get(node.id) if isinstance(node, ast.Name) else None


def of_call(file: Path, call: ast.Call, definition: Definition, name: str) -> Iterator[str]:
    """A call that does not fit what is called."""
    is_method = isinstance(call.func, ast.Attribute) and isinstance(definition.node, FunctionNode)
    signature = definition.signature(bound=is_method)
    if signature is not None and (reason := misfit(call, signature)):
        yield f"{place(file, call)}: {name}(...) does not fit: {reason}"


def of_expressions(
    file: Path, tree: ast.Module, classes: Mapping[str, Sequence[str]], vllm: Package
) -> Iterator[str]:
    """Attributes and methods of objects whose classes CLASSES names; it must name all, and no others."""
    kinds = {text: [vllm.find(path) for path in paths] for text, paths in classes.items()}
    for text, paths in classes.items():
        yield from (f"{path} is gone" for path, kind in zip(paths, kinds[text], strict=True) if kind is None)
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    unused = set(classes)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        text = ast.unparse(node.value)
        unused.discard(text)
        if text not in classes and text.startswith(tuple(f"{known}." for known in classes)):
            yield f"{place(file, node)}: CLASSES does not say of which class {text} is"
        for path, kind in zip(classes.get(text, ()), kinds.get(text, ()), strict=True):
            member = kind.member(node.attr) if kind is not None else None
            if kind is not None and member is None:
                yield f"{place(file, node)}: {path} has no {node.attr}"
            elif member is not None and id(node) in calls and isinstance(member.node, FunctionNode):
                yield from of_call(file, calls[id(node)], member, f"{path}.{node.attr}")
    yield from (f"CLASSES names {text!r}, which is not in {file.name}" for text in sorted(unused))


def of_replaced_function(
    file: Path, tree: ast.Module, node: ast.Assign, imported: Mapping[str, Definition]
) -> Iterator[str]:
    """A function in vLLM's module that vlrl replaces: whoever calls it must find ours, and find it fit."""
    target = node.targets[0]
    assert isinstance(target, ast.Attribute)
    if not isinstance(target.value, ast.Name) or target.value.id not in imported:
        return
    module, name = imported[target.value.id].module, target.attr
    original = module.find(name)
    if original is None:
        yield f"{place(file, node)}: {module.name} has no {name} to replace"
        return
    ours = function(tree, ast.unparse(node.value))
    theirs = original.signature()
    if theirs is None or Definition(module.package, module, ours).signature() != theirs:
        yield f"{place(file, node)}: {name} has other parameters now: {theirs}"
    users = [other for other in module.package.modules_with(f"{name}(") if loads(other, name)]
    if module not in users:
        yield f"{place(file, node)}: {module.name} no longer calls {name}"
    yield from (
        f"{place(file, node)}: {other.name} calls {name} too, where it is not replaced"
        for other in users
        if other is not module
    )


def of_subclass(ours: str, path: str, vllm: Package) -> Iterator[str]:
    """Methods that a base class of vLLM's wants, and that its callers call otherwise than ours take it."""
    file, name = ours.split(":")
    kind = next(n for n in parse(ENGINE / file).body if isinstance(n, ast.ClassDef) and n.name == name)
    methods = {n.name: n for n in kind.body if isinstance(n, FunctionNode)}
    if (base := vllm.find(path)) is None:
        yield f"{ours}: {path} is gone"
        return
    for definition in base.classes():
        assert isinstance(definition.node, ast.ClassDef)
        for node in (n for n in definition.node.body if isinstance(n, FunctionNode)):
            if node.name not in methods:
                if any("abstractmethod" in ast.unparse(d) for d in node.decorator_list):
                    yield f"{ours} lacks {node.name}, which {path} demands"
                continue
            asked, own = (
                Definition(vllm, base.module, method).signature(bound=True)
                for method in (node, methods[node.name])
            )
            assert asked is not None and own is not None
            call = ast.Call(ast.Name(node.name), [ast.Name(name) for name in asked.parameters], [])
            if reason := misfit(call, own):
                yield f"{ours}.{node.name} cannot be called as {path}.{node.name} is: {reason}"


def of_mixin(ours: str, path: str, vllm: Package) -> Iterator[str]:
    """Names of a class of vlrl that a class of vLLM has too, and attributes that it expects there in vain."""
    file, name = ours.split(":")
    kind = next(n for n in parse(ENGINE / file).body if isinstance(n, ast.ClassDef) and n.name == name)
    worker = vllm.find(path)
    if worker is None:
        yield f"{ours}: {path} is gone"
        return
    methods = {n.name for n in kind.body if isinstance(n, FunctionNode)}
    fields = [n for n in kind.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    own = methods | {n.target.id for n in fields if n.value is not None}  # type: ignore[union-attr]
    expected = {n.target.id for n in fields if n.value is None}  # type: ignore[union-attr]
    yield from (
        f"{path} has {clash} of its own, and so has {ours}" for clash in sorted(own) if worker.member(clash)
    )
    yield from (
        f"{path} has no {gone}, which {ours} reads" for gone in sorted(expected) if not worker.member(gone)
    )


def of_replaced_method(ours: str, path: str, vllm: Package) -> Iterator[str]:
    """Calls of a method of vLLM's that do not fit the function in its place."""
    file, name = ours.split(":")
    if vllm.find(path) is None:
        yield f"{ours}: {path} is gone"
        return
    definition = Definition(vllm, vllm.module("vllm"), function(parse(ENGINE / file), name))  # type: ignore[arg-type]
    own = definition.signature(bound=True)  # to the object whose method it replaces
    assert own is not None
    method = path.rpartition(".")[2]
    for module in vllm.modules_with(f".{method}("):
        for node in ast.walk(parse(module.file)):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            if node.func.attr == method and (reason := misfit(node, own)):
                yield f"{module.name} calls {method} otherwise than {ours} takes it: {reason}"


def of_arguments(ours: str, path: str, vllm: Package) -> Iterator[str]:
    """Keys of the dictionary that a function returns which are not parameters of what they are for."""
    file, name = ours.split(":")
    target = vllm.find(path)
    signature = target.signature() if target is not None else None
    if signature is None:
        yield f"{ours}: {path} is gone"
        return
    for node in (n for n in ast.walk(function(parse(ENGINE / file), name)) if isinstance(n, ast.Return)):
        assert isinstance(node.value, ast.Dict), f"{ours} must return a literal, for its keys to be read"
        keys = [key.value for key in node.value.keys if isinstance(key, ast.Constant)]
        yield from (f"{ours}: {path} has no {key}" for key in keys if key not in signature.parameters)


def of_environment(vllm: Package) -> Iterator[str]:
    """Environment variables that vlrl sets and vLLM no longer knows."""
    table = vllm.find(ENVIRONMENT)
    if table is None or table.node is None:
        yield f"{ENVIRONMENT} is gone"
        return
    known = set(re.findall(r"'(VLLM_\w+)':", ast.unparse(table.node)))
    for file in sorted((ROOT / "vlrl").rglob("*.py")):
        names = set(re.findall(r"\"(VLLM_[A-Z0-9_]+)\"", file.read_text(encoding="utf-8")))
        yield from (f"{file.relative_to(ROOT)}: vLLM has no {name}" for name in sorted(names - known))


def unlike(vllm: Package, other: Path) -> list[str]:
    """Files in which another build of vLLM differs, of those that vlrl relies on and of the loaders'."""
    findings(vllm)
    folders = (vllm.folder / "vllm" / folder for folder in LOADERS)
    files = vllm.files.union(*(folder.rglob("*.py") for folder in folders))
    names = sorted(file.relative_to(vllm.folder) for file in files)
    return [
        f"{name} differs from that of {vllm.folder}"
        for name in names
        if not (other / name).exists() or (other / name).read_bytes() != (vllm.folder / name).read_bytes()
    ]


def function(tree: ast.Module, name: str) -> FunctionNode:
    """A function of a file, wherever it is defined."""
    return next(n for n in ast.walk(tree) if isinstance(n, FunctionNode) and n.name == name)


def loads(module: Module, name: str) -> bool:
    """Whether a module uses a name that it has imported or defined."""
    if name not in module.names:
        return False
    return any(
        isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)
        for n in ast.walk(parse(module.file))
    )


def place(file: Path, node: ast.AST) -> str:
    return f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def installed() -> Path:
    """The folder of the installed vLLM."""
    spec = find_spec("vllm")
    assert spec is not None and spec.submodule_search_locations is not None
    return Path(spec.submodule_search_locations[0]).parent


if __name__ == "__main__":
    if found := findings(Package(Path(sys.argv[1]) if len(sys.argv) > 1 else installed(), "vllm")):
        raise SystemExit("\n".join(found))
    print("all that vlrl relies on is there")
