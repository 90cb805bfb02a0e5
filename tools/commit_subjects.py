"""Check that the subjects of commits are at most 72 characters long.

    python tools/commit_subjects.py                  those since BASE (`make check`)
    python tools/commit_subjects.py --message FILE   the one git is about to make (the commit-msg hook)

A history that cannot be read (no git, an archive, a clone without BASE) is reported, not failed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASE = "627a104e2d38342263419bada531888870cafb02"
"""Subjects up to this commit are older than the check."""
LIMIT = 72
AUTOMATIC = ("fixup! ", "squash! ", "amend! ")
"""Prefixes that git sets before another commit's subject, to be merged into it."""


def git(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, encoding="utf-8")


def new_subjects(root: Path, base: str = BASE) -> list[tuple[str, str]]:
    """The (short hash, subject) of each commit after `base`.

    A shallow clone may not reach back to `base`: then all its commits are newer.

    Raises:
        LookupError: The history cannot be read, or `base` is not in it.
    """
    try:
        shallow = git(root, "rev-parse", "--is-shallow-repository")
    except OSError as error:
        raise LookupError(f"git does not run: {error}") from error
    if shallow.returncode != 0:
        raise LookupError(shallow.stderr.strip())
    if git(root, "merge-base", "--is-ancestor", base, "HEAD").returncode == 0:
        commits = f"{base}..HEAD"
    elif shallow.stdout.strip() == "true":
        commits = "HEAD"
    else:
        raise LookupError(f"HEAD does not descend from {base[:12]}, up to which subjects are not checked")
    log = git(root, "log", "--format=%h%x00%s", commits)
    if log.returncode != 0:
        raise LookupError(log.stderr.strip())
    return [
        (commit, subject) for commit, _, subject in (line.partition("\0") for line in log.stdout.splitlines())
    ]


def subject_of(message: str) -> str:
    """The first line of a commit message that is neither empty nor one of git's comments."""
    lines = (line.strip() for line in message.splitlines())
    return next((line for line in lines if line and not line.startswith("#")), "")


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    if len(arguments) == 2 and arguments[0] == "--message":
        subject = subject_of(Path(arguments[1]).read_text(encoding="utf-8"))
        checked = [] if subject.startswith(AUTOMATIC) else [("this commit", subject)]
    elif arguments:
        raise SystemExit(__doc__)
    else:
        try:
            checked = new_subjects(root)
        except LookupError as error:
            print(f"commit subjects: not checked: {error}")
            return 0
    long = [(commit, subject) for commit, subject in checked if len(subject) > LIMIT]
    for commit, subject in long:
        print(f"{commit}: the subject has {len(subject)} characters; shorten it to {LIMIT}: {subject}")
    return int(bool(long))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
