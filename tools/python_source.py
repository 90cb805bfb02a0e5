"""A package's Python source, read and never imported: what its modules define, and how that is called."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Parameter = inspect.Parameter


class Package:
    """A package in a folder of sources.

    Attributes:
        files: those that were read so far.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.files: set[Path] = set()
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module of this dotted name, if there is one."""
        if name not in self._modules:
            base = self.folder / name.replace(".", "/")
            file = next((f for f in (base.with_suffix(".py"), base / "__init__.py") if f.is_file()), None)
            self._modules[name] = Module(self, name, file) if file is not None else None
        return self._modules[name]

    def find(self, path: str) -> Definition | None:
        """The definition at a dotted path, such as "vllm.v1.engine.llm_engine.LLMEngine.step"."""
        module_name, _, name = path.rpartition(".")
        if (module := self.module(module_name)) is not None:
            return module.find(name)
        owner = self.find(module_name) if module_name else None
        return owner.member(name) if owner is not None else None

    def modules_with(self, text: str) -> Iterator[Module]:
        """The modules in whose source a text occurs."""
        for file in sorted((self.folder / self.name).rglob("*.py")):
            if text in file.read_text(encoding="utf-8"):
                name = ".".join(file.relative_to(self.folder).with_suffix("").parts)
                module = self.module(name.removesuffix(".__init__"))
                assert module is not None
                yield module


def parse(file: Path) -> ast.Module:
    return _parsed(file.read_text(encoding="utf-8"))


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@dataclass(frozen=True)
class Definition:
    """What a name stands for: a class, a function, a module, or a value that was assigned."""

    package: Package
    module: Module
    node: ast.AST | None

    def member(self, name: str) -> Definition | None:
        """The member of a class, its bases' and those that its methods assign included, or of a module."""
        if not isinstance(self.node, ast.ClassDef):
            return self.module.find(name) if self.node is None else None
        for kind in self.classes():
            assert isinstance(kind.node, ast.ClassDef)
            if (node := own_members(kind.node).get(name)) is not None:
                return Definition(self.package, kind.module, node)
        return None

    def classes(self) -> list[Definition]:
        """This class and its bases that are in the package, nearest first."""
        found = [self]
        if isinstance(self.node, ast.ClassDef):
            for base in self.node.bases:
                while isinstance(base, ast.Subscript):  # Base[T]
                    base = base.value
                owner = self.module.expression(base)
                if owner is not None and isinstance(owner.node, ast.ClassDef):
                    found += [item for item in owner.classes() if item not in found]
        return found

    @property
    def is_static(self) -> bool:
        decorators = getattr(self.node, "decorator_list", [])
        return any(isinstance(d, ast.Name) and d.id == "staticmethod" for d in decorators)

    def signature(self, *, bound: bool = False) -> inspect.Signature | None:
        """How it is called, if that can be read; bound: as a method, without its first parameter."""
        if isinstance(self.node, FunctionNode):
            parameters = parameters_of(self.node)
            return inspect.Signature(parameters[1:] if bound and not self.is_static else parameters)
        if not isinstance(self.node, ast.ClassDef):
            return None
        constructor = self.member("__init__")
        if constructor is not None:
            return constructor.signature(bound=True)
        fields = [name for kind in reversed(self.classes()) for name in fields_of(kind.node)]
        return inspect.Signature(
            [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD, default=None) for n in dict.fromkeys(fields)]
        )


class Module:
    """One file."""

    def __init__(self, package: Package, name: str, file: Path) -> None:
        self.package, self.name, self.file = package, name, file
        package.files.add(file)

    @cached_property
    def names(self) -> dict[str, ast.AST]:
        """What its top level binds, branches included; of several bindings the first."""
        found: dict[str, ast.AST] = {}
        for node in statements(parse(self.file).body):
            if isinstance(node, ast.ClassDef | FunctionNode):
                found.setdefault(node.name, node)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                for alias in node.names:
                    found.setdefault(alias.asname or alias.name.partition(".")[0], node)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        found.setdefault(target.id, node)
        return found

    def find(self, name: str) -> Definition | None:
        """What a name stands for here, followed through the package's own imports."""
        node = self.names.get(name)
        if isinstance(node, ast.ImportFrom):
            alias = next(a for a in node.names if (a.asname or a.name) == name)
            source = self._absolute(node)
            if source.partition(".")[0] != self.package.name:
                return Definition(self.package, self, node)
            return self.package.find(f"{source}.{alias.name}") or self._submodule(f"{source}.{alias.name}")
        if node is not None:
            return Definition(self.package, self, node)
        return self._submodule(f"{self.name}.{name}")

    def expression(self, node: ast.expr) -> Definition | None:
        """What a name or an attribute of a module stands for here."""
        if isinstance(node, ast.Name):
            return self.find(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.expression(node.value)
            return owner.member(node.attr) if owner is not None else None
        return None

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        if self.file.name != "__init__.py":
            parts = parts[:-1]
        parts = parts[: len(parts) - node.level + 1]
        return ".".join([*parts, *filter(None, [node.module])])

    def _submodule(self, name: str) -> Definition | None:
        module = self.package.module(name)
        return Definition(self.package, module, None) if module is not None else None


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of a block, those in its branches included."""
    for node in body:
        yield node
        for field in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from statements(getattr(node, field, []))
        for handler in getattr(node, "handlers", []):
            yield from statements(handler.body)


@cache
def own_members(kind: ast.ClassDef) -> dict[str, ast.AST]:
    """Methods, class variables, and the attributes that the methods assign to self."""
    found: dict[str, ast.AST] = {}
    for node in statements(kind.body):
        if isinstance(node, ast.ClassDef | FunctionNode):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.setdefault(node.target.id, node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, node)
    for node in ast.walk(kind):
        if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)):
            continue
        if isinstance(node.value, ast.Name) and node.value.id == "self":
            found.setdefault(node.attr, node)
    return found


def fields_of(node: ast.AST | None) -> list[str]:
    """Fields of a dataclass or of a struct, in order."""
    assert isinstance(node, ast.ClassDef)
    fields = [n for n in node.body if isinstance(n, ast.AnnAssign) and isinstance(n.target, ast.Name)]
    return [n.target.id for n in fields if "ClassVar" not in ast.unparse(n.annotation)]  # type: ignore[union-attr]


def parameters_of(node: FunctionNode) -> list[Parameter]:
    """Parameters of a function, with None for any default."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [Parameter.empty] * (len(positional) - len(arguments.defaults)) + [None] * len(
        arguments.defaults
    )
    found = [
        Parameter(
            a.arg,
            Parameter.POSITIONAL_ONLY if a in arguments.posonlyargs else Parameter.POSITIONAL_OR_KEYWORD,
            default=default,
        )
        for a, default in zip(positional, defaults, strict=True)
    ]
    if arguments.vararg:
        found.append(Parameter(arguments.vararg.arg, Parameter.VAR_POSITIONAL))
    found += [
        Parameter(a.arg, Parameter.KEYWORD_ONLY, default=Parameter.empty if default is None else None)
        for a, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ]
    if arguments.kwarg:
        found.append(Parameter(arguments.kwarg.arg, Parameter.VAR_KEYWORD))
    return found


def misfit(call: ast.Call, signature: inspect.Signature) -> str:
    """Why a call does not fit a signature; "" if it does, or if its arguments are unpacked from elsewhere."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        unknown = [k.arg for k in call.keywords if k.arg and k.arg not in signature.parameters]
        takes_any = any(p.kind is Parameter.VAR_KEYWORD for p in signature.parameters.values())
        return f"no parameter {unknown[0]!r}" if unknown and not takes_any else ""
    try:
        signature.bind(*call.args, **{k.arg: k.value for k in call.keywords if k.arg})
    except TypeError as error:
        return str(error)
    return ""
