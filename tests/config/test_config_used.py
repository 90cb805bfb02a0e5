"""Law 9: every option is read. Found by following `config.section.field` through the sources.

The types of a few expressions are inferred: annotated parameters and attributes, what is assigned from
them, loops over lists of sections, `load_config(…)`, and `anything.config`. Where that ends (an element
of a tuple), a field counts as read if the file imports its section by name.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from pydantic import Field

import vlrl.config.algorithm
import vlrl.config.asynchronous
import vlrl.config.data
import vlrl.config.engine
import vlrl.config.learning.policies
import vlrl.config.learning.preferences
import vlrl.config.memory
import vlrl.config.options
import vlrl.config.rollout
from vlrl.config import Config
from vlrl.config.options import Section

ROOT = Path(__file__).parents[2]
FieldOf = tuple[str, str]  # (section class, field)
Sections = dict[str, type[Section]]

SECTIONS: Sections = {
    name: item
    for name, item in (
        *vars(vlrl.config.options).items(),
        *vars(vlrl.config.algorithm).items(),
        *vars(vlrl.config.data).items(),
        *vars(vlrl.config.rollout).items(),
        *vars(vlrl.config.engine).items(),
        *vars(vlrl.config.memory).items(),
        *vars(vlrl.config.asynchronous).items(),
        *vars(vlrl.config.learning.policies).items(),
        *vars(vlrl.config.learning.preferences).items(),
        ("Config", Config),
    )
    if inspect.isclass(item) and issubclass(item, Section) and item is not Section
}


def sources() -> Iterator[str]:
    """Texts of the package but for the options themselves; glob follows no symlinks: folders are named."""
    for folder in (ROOT / "vlrl", ROOT / "processors", ROOT / "rewards", ROOT / "envs"):
        for file in folder.rglob("*.py"):
            if file.parent.name != "config" or not file.name.endswith("options.py"):
                yield file.read_text(encoding="utf-8")


class Reads(ast.NodeVisitor):
    """Collects the (section, field) pairs that one file reads."""

    def __init__(self, tree: ast.Module, sections: Sections) -> None:
        self.sections = sections
        self.found: set[FieldOf] = set()
        self.known: dict[str, str] = {}  # variable or self attribute → section class
        self.imported = {
            alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        for _ in range(2):  # attributes may be used above the method that assigns them
            self.visit(tree)

    def type_of(self, node: ast.expr | None) -> str | None:
        """The section class of an expression, None if it is none or unknown."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, ast.Attribute):
            owner = self.type_of(node.value)
            if owner is not None:
                return self.section_in(
                    getattr(self.sections[owner].model_fields.get(node.attr), "annotation", None)
                )
            if ast.unparse(node.value) == "self":
                return self.known.get(f"self.{node.attr}")
            return "Config" if node.attr == "config" else None  # run.config
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("load_config", "parse_config"):
                return "Config"
            return self.type_of(node.func.value) if called.endswith(".model_copy") else None  # type: ignore[attr-defined]
        return None

    def section_in(self, annotation: object) -> str | None:
        """The section class named anywhere in an annotation: X, X | None, list[X], Sequence[X]."""
        if isinstance(annotation, ast.expr):
            names = {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)}
        else:
            names = {getattr(a, "__name__", "") for a in (annotation, *get_args(annotation))}
        return next(iter(names & set(self.sections)), None)

    def learn(self, target: ast.expr, value: ast.expr | None) -> None:
        """Remember what an assignment or a loop makes of a name."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts, strict=False):
                self.learn(one, other)
        section = self.type_of(value)
        if section and isinstance(target, ast.Name | ast.Attribute):
            self.known[ast.unparse(target)] = section

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Parameters by their annotations; names do not leave the function, self's attributes do."""
        outer = dict(self.known)
        for parameter in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.known.pop(parameter.arg, None)
            if section := self.section_in(parameter.annotation):
                self.known[parameter.arg] = section
        self.generic_visit(node)
        attributes = {name: section for name, section in self.known.items() if name.startswith("self.")}
        self.known = {**outer, **attributes}

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.learn(target, node.value)
        self.generic_visit(node)

    def visit_For(self, node: ast.For) -> None:
        self.learn(node.target, node.iter)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        self.learn(node.target, node.iter)
        self.generic_visit(node)

    def visit_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> None:
        for generator in node.generators:
            self.visit(generator)
        self.visit(node.elt)

    visit_GeneratorExp = visit_ListComp

    def visit_Attribute(self, node: ast.Attribute) -> None:
        owner = self.type_of(node.value)
        owners: Iterable[str] = [owner] if owner else (self.imported & set(self.sections)) - {"Config"}
        if isinstance(node.ctx, ast.Load):
            self.found |= {(name, node.attr) for name in owners}
        self.generic_visit(node)


def dead_fields(sections: Sections, texts: Iterable[str]) -> list[str]:
    """ "Section.field" of every field that none of the texts reads, directly or through a property."""
    read: set[FieldOf] = set()
    for text in texts:
        read |= Reads(ast.parse(text), sections).found
    for name, section in sections.items():
        for attribute, value in vars(section).items():
            if isinstance(value, property) and (name, attribute) in read and value.fget:
                body = inspect.cleandoc(inspect.getsource(value.fget))
                read |= Reads(ast.parse(body.replace("(self)", f"(self: {name})")), sections).found
    fields = [(name, field) for name, section in sections.items() for field in section.model_fields]
    families = {name: [base.__name__ for base in section.__mro__] for name, section in sections.items()}
    return [
        f"{name}.{field}"
        for name, field in fields
        if not any((base, field) in read for base in families[name])  # one that is read as its base is read
    ]


def test_every_option_is_read() -> None:
    assert dead_fields(SECTIONS, sources()) == [], "remove the option, or read it (law 9)"


def test_a_dead_option_is_found() -> None:
    """Planted options of every kind of use, so that the test above cannot pass by being blind."""

    class OptimConfig(Section):
        lr: float = 0.0
        eps: float = 0.0
        decay: float = 0.0
        name: str = ""

    class RewardConfig(Section):
        name: str = ""
        weight: float = 0.0

    class Planted(Config):
        optim: OptimConfig = OptimConfig()  # type: ignore[assignment]
        rewards: list[RewardConfig] = Field(default_factory=list)  # type: ignore[assignment]

    sections: Sections = {"Config": Planted, "OptimConfig": OptimConfig, "RewardConfig": RewardConfig}

    def dead(text: str) -> set[str]:
        mentioned = {"OptimConfig.lr", "OptimConfig.eps", "OptimConfig.decay", "OptimConfig.name"}
        mentioned |= {"RewardConfig.name", "RewardConfig.weight", "Config.optim", "Config.rewards"}
        return mentioned & set(dead_fields(sections, [text]))

    everything = dead("")
    assert len(everything) == 8
    assert everything - dead("def f(config: Config): config.optim.lr") == {"OptimConfig.lr", "Config.optim"}
    assert everything - dead("def f(c: 'x', o: OptimConfig): o.eps; c.name") == {"OptimConfig.eps"}
    assert everything - dead("def f(model): model.name; model.lr") == set()
    assert everything - dead("def f(o: OptimConfig): o.lr = 3") == set()
    loop = "def f(config: Config):\n    for r in config.rewards:\n        r.weight"
    assert everything - dead(loop) == {"Config.rewards", "RewardConfig.weight"}
    attribute = """
class A:
    def late(self): return self._optim.decay
    def __init__(self, config: Config):
        self._optim, other = config.optim, config.rewards
        [r.name for r in other]
"""
    assert everything - dead(attribute) == {
        "Config.optim", "OptimConfig.decay", "Config.rewards", "RewardConfig.name",
    }  # fmt: skip
    unknown = "from vlrl.config import RewardConfig\ndef f(pairs):\n    for c, g in pairs: c.weight"
    assert everything - dead(unknown) == {"RewardConfig.weight"}
