"""The compilers that Triton and DeepSpeed call at run time, tried on a stub of what they compile."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

COMPILE_TIMEOUT_S = 120.0


class Stub(NamedTuple):
    """A program like one that a library compiles when it is used.

    Attributes:
        source: of an extension of Python.
        variable: name of the environment variable that names the compiler.
        compilers: looked for in this order without it.
        libraries: linked against.
        packages: Debian's, of the compiler and the libraries.
    """

    source: str
    variable: str
    compilers: Sequence[str]
    libraries: Sequence[str]
    packages: Sequence[str]


TRITON = Stub(
    "#include <stdlib.h>\n#include <Python.h>\nint stub(void) { return Py_IsInitialized(); }\n",
    variable="CC",
    compilers=("gcc", "clang"),  # in Triton's order; it does not try cc
    libraries=(),
    packages=("gcc", "libc6-dev"),
)
"""Triton compiles its link to the driver in C, once for every Python."""

DISK_ACCESS = Stub(
    "#include <cstdlib>\n#include <libaio.h>\n#include <Python.h>\n"
    "int stub() { io_context_t context = 0; return io_submit(context, 0, nullptr); }\n",
    variable="CXX",
    compilers=("c++",),  # the one that torch calls
    libraries=("aio",),
    packages=("g++", "libaio-dev"),
)
"""DeepSpeed compiles its access to disks (trainer.offload_dir) in C++, against libaio."""


class StubFailure(NamedTuple):
    """Why a stub cannot be compiled, and Debian's packages of all that it takes."""

    reason: str
    packages: Sequence[str]


def compile_stub(
    stub: Stub, include: Path | None = None, environment: Mapping[str, str] = os.environ
) -> StubFailure | None:
    """Compile and link a stub with this Python's headers.

    Args:
        stub: what to compile.
        include: folder of Python.h; None takes this Python's.
        environment: names the compiler, or the PATH it is looked for in.

    Returns:
        What is wrong; None if it compiles.
    """
    include = include or Path(sysconfig.get_paths(scheme="posix_prefix")["include"])
    packages = (*stub.packages, *_packages_of_headers(include))
    compiler = _compiler(stub, environment)
    if compiler is None:
        return StubFailure(f"there is no {' or '.join(stub.compilers)} in PATH", packages)
    if not (include / "Python.h").exists():
        return StubFailure(f"there is no {include / 'Python.h'}", packages)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / ("stub.c" if stub.variable == "CC" else "stub.cpp")
        source.write_text(stub.source)
        command = [*compiler, f"-I{include}", str(source), "-shared", "-fPIC", "-o", f"{source}.so"]
        command += [f"-l{name}" for name in stub.libraries]
        try:
            child = subprocess.run(
                command, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S, env=dict(environment)
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return StubFailure(f"{shlex.join(compiler)} does not run: {error}", packages)
    if child.returncode == 0:
        return None
    lines = child.stderr.splitlines() or [f"{shlex.join(compiler)} ends with code {child.returncode}"]
    errors = [line for line in lines if "error" in line or "cannot find" in line]
    return StubFailure((errors or lines)[0], packages)


def _compiler(stub: Stub, environment: Mapping[str, str]) -> list[str] | None:
    """The command that the library would call."""
    if named := environment.get(stub.variable):
        return shlex.split(named)
    found = (shutil.which(name, path=environment.get("PATH")) for name in stub.compilers)
    path = next(filter(None, found), None)
    return None if path is None else [path]


def _packages_of_headers(include: Path) -> list[str]:
    """Debian's package of Python.h; none for a Python that does not come from a package."""
    of_debian = str(include).startswith("/usr/include/")
    return [f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"] if of_debian else []
