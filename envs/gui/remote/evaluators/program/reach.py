"""What a function of desktop_env needs, read from its code and from that of the functions that it calls."""

from __future__ import annotations

import builtins
import dis
import importlib.util
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType, FunctionType, ModuleType
from typing import Any

from stand_ins import DISTRIBUTIONS, PACKAGE, StandIn

RUNS_CODE = (builtins.eval, builtins.exec)


@dataclass
class Reach:
    """What a function needs.

    Attributes:
        missing: packages that are not installed → why they cannot be imported.
        packages: those that are installed, as pip calls them.
        attributes: names of attributes in the code, of which some say what of a machine is used.
        modules: of the standard library.
        runs_code: it runs text that it was given as Python, here.
    """

    missing: dict[str, str] = field(default_factory=dict)
    packages: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    modules: set[str] = field(default_factory=set)
    runs_code: bool = False

    @property
    def wants(self) -> list[str]:
        """What it needs beside files, the machine's server and packages."""
        has_requests = "requests" in self.packages | self.missing.keys() or "urllib.request" in self.modules
        wanted = {
            "chrome": "chromium_port" in self.attributes,
            "vlc": "vlc_port" in self.attributes,
            "google drive": "pydrive" in self.packages | self.missing.keys(),
            "network": has_requests and "vm_ip" not in self.attributes,
            "code": self.runs_code,
        }
        return [name for name, is_wanted in wanted.items() if is_wanted]


def reach_of(function: Any, owner: type | None = None) -> Reach:
    """Follow the names that a function reads.

    Args:
        function: of desktop_env, or what stands in for one.
        owner: its class, whose other methods it may call.
    """
    reach, seen, queue = Reach(), set[int](), [function]
    while queue:
        found = queue.pop()
        if id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, StandIn):
            reach.missing[found.missing.package] = found.missing.why
            continue
        reach.runs_code |= any(found is each for each in RUNS_CODE)
        found = inspect.unwrap(found) if callable(found) else found
        _note_module(found, reach)
        if isinstance(found, FunctionType) and found.__module__.startswith(PACKAGE):
            queue += _read(found, reach, owner)
    return reach


def _read(function: FunctionType, reach: Reach, owner: type | None) -> Iterator[Any]:
    """The values of the names that a function reads, and what it imports itself."""
    methods = vars(owner) if owner is not None else {}
    level = 0  # of an import's dots: the last number before it
    for instruction in _instructions(function.__code__):
        name = str(instruction.argval)
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield function.__globals__.get(name, getattr(builtins, name, None))
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            reach.attributes.add(name)
            yield methods.get(name)
            reach.runs_code |= name == "exec_module"
        elif instruction.opname.startswith("LOAD_") and type(instruction.argval) is int:
            level = instruction.argval
        elif instruction.opname == "IMPORT_NAME" and level == 0:
            top = name.split(".")[0]
            if importlib.util.find_spec(top) is None:
                yield StandIn(DISTRIBUTIONS.get(top, top), f"No module named {top!r}")
            reach.modules.add(name)


def _instructions(code: CodeType) -> Iterator[dis.Instruction]:
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _instructions(constant)


def _note_module(found: Any, reach: Reach) -> None:
    of_value = found.__name__ if isinstance(found, ModuleType) else getattr(found, "__module__", None)
    module = str(of_value or type(found).__module__)
    top = module.split(".")[0]
    if top in sys.stdlib_module_names:
        reach.modules.add(module)
    elif top != PACKAGE:
        reach.packages.add(DISTRIBUTIONS.get(top, top))
