"""The stubs compile here, and each thing that may be missing is named with the package that brings it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from vlrl.machine.compiler import DISK_ACCESS, TRITON, Stub, compile_stub

HEADERS = f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"


def program(folder: Path, name: str, script: str) -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@pytest.mark.parametrize("stub", [TRITON, DISK_ACCESS], ids=["Triton", "disk access"])
def test_it_compiles_here(stub: Stub) -> None:
    assert compile_stub(stub) is None


def test_no_python_headers(tmp_path: Path) -> None:
    failure = compile_stub(TRITON, include=tmp_path)
    assert failure is not None
    assert failure.reason == f"there is no {tmp_path}/Python.h"
    assert failure.packages == ("gcc", "libc6-dev")  # a Python outside /usr brings its own headers
    of_debian = compile_stub(TRITON, include=Path("/usr/include/python3.0"))
    assert of_debian is not None and HEADERS in of_debian.packages


def test_no_compiler(tmp_path: Path) -> None:
    program(tmp_path, "cc", "exit 0")  # Triton does not look for it
    failure = compile_stub(TRITON, environment={"PATH": str(tmp_path)})
    assert failure is not None
    assert failure.reason == "there is no gcc or clang in PATH"
    assert "gcc" in failure.packages


def test_a_compiler_that_fails_is_quoted(tmp_path: Path) -> None:
    """Debian's gcc comes without the C library's headers."""
    gcc = program(
        tmp_path, "gcc", "echo In file: >&2; echo 'stub.c:1: fatal error: stdlib.h: none' >&2; exit 1"
    )
    failure = compile_stub(TRITON, environment={"PATH": str(tmp_path)})
    assert failure is not None
    assert failure.reason == "stub.c:1: fatal error: stdlib.h: none"
    assert "libc6-dev" in failure.packages
    named = compile_stub(TRITON, environment={"CC": str(gcc), "PATH": ""})
    assert named == failure
    absent = compile_stub(TRITON, environment={"CC": "/no/such/gcc"})
    assert absent is not None and "/no/such/gcc does not run" in absent.reason


def test_a_library_that_is_missing_is_quoted() -> None:
    missing = DISK_ACCESS._replace(libraries=["vlrl_no_such_library"])
    failure = compile_stub(missing)
    assert failure is not None
    assert "cannot find -lvlrl_no_such_library" in failure.reason
    assert "libaio-dev" in failure.packages
