"""The verdict of a question: an exception is placed in the author's code, not in the check's own."""

from __future__ import annotations

from pathlib import Path

from vlrl.check.envs import verdict


def test_an_exception_is_placed_in_the_last_line_that_is_not_the_checks_own() -> None:
    own = str(Path(verdict.__file__).with_name("conduct.py"))
    try:
        exec(compile("\n\nraise ValueError('odd')", own, "exec"))
    except ValueError as error:
        found = verdict.raised("steps", error)
    assert found.status == "fail"
    assert found.findings[0].startswith(f"at {__file__}:")
