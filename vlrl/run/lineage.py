"""RUN/lineage.json: where a run's numbers come from, an entry for each start: code, data, model and seed."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from vlrl import __version__
from vlrl.config import Config
from vlrl.data import StreamedRows
from vlrl.data.curriculum.fingerprints import data_fingerprint, model_fingerprint
from vlrl.data.run_data import Source, Sources
from vlrl.errors import VlrlError
from vlrl.run.resume import write_config
from vlrl.run.summary import SUMMARY_FILE

LINEAGE_FILE = "lineage.json"
CHECKOUT = Path(__file__).resolve().parents[2]
"""The folder that holds the package: a checkout of vlrl, if it runs from one."""
GIT_TIMEOUT_S = 20.0


def begin_folder(config: Config, sources: Sources, first_step: int) -> None:
    """Note in the run's folder under which config, code, data and model its steps are made from now on.

    The difference of a changed checkout goes to RUN/code_HASH.diff.

    Args:
        config: of the run.
        sources: its rows.
        first_step: 0, or the step of the checkpoint that it goes on from.
    """
    folder = config.run_dir
    write_config(folder, config, first_step)
    (folder / SUMMARY_FILE).unlink(missing_ok=True)  # of fewer steps: the run is not finished any more
    entry = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": socket.gethostname(),
        "command": sys.argv,
        "first_step": first_step,
        "seed": config.run.seed,
        "code": code_version(folder),
        "model": {"path": config.model.path, **_model(config.model.path)},
        "data": [_rows("train", source) for source in sources.train]
        + [_rows("eval", source) for source in sources.heldout],
    }
    entries = [*read_lineage(folder), entry] if first_step else [entry]
    aside = folder / f"{LINEAGE_FILE}.part"
    aside.write_text(json.dumps(entries, indent=1, default=str) + "\n", encoding="utf-8")
    os.replace(aside, folder / LINEAGE_FILE)


def read_lineage(run_dir: Path) -> list[dict[str, Any]]:
    """The entries of a run's starts, the first one first; none where there is no such file."""
    try:
        entries = json.loads((run_dir / LINEAGE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return entries if isinstance(entries, list) else []


def code_version(folder: Path, checkout: Path = CHECKOUT) -> dict[str, Any]:
    """Vlrl's version, and of a checkout the commit and what was changed since.

    Args:
        folder: where the difference is written, if there is one.
        checkout: which may be no repository.
    """
    found: dict[str, Any] = {"vlrl": __version__}
    commit = _git(checkout, "rev-parse", "HEAD") if (checkout / ".git").exists() else None
    if commit is None:
        return found
    found["commit"] = commit.strip()
    diff = _git(checkout, "diff", "HEAD", "--binary") or ""
    found["is_changed"] = bool(diff)
    if diff:
        name = f"code_{hashlib.sha256(diff.encode()).hexdigest()[:12]}.diff"
        (folder / name).write_text(diff, encoding="utf-8", errors="surrogateescape")
        found["diff"] = name
    return found


def parent_run(model_path: str) -> Path | None:
    """The folder of the run that made a model, or one of whose checkpoints it is; None if there is none."""
    path = Path(model_path).absolute()
    return next((each for each in path.parents if (each / LINEAGE_FILE).is_file()), None)


def _model(path: str) -> Mapping[str, Any]:
    parent = parent_run(path)
    found: dict[str, Any] = {} if parent is None else {"parent_run": str(parent)}
    try:
        return found | {"fingerprint": model_fingerprint(path)}
    except (VlrlError, OSError):  # it is not here yet: whoever loads it says so
        return found


def _rows(split: str, source: Source) -> dict[str, Any]:
    named = {"split": split, "name": source.options.name}
    if isinstance(source.rows, StreamedRows):  # without a number of rows
        return named
    return named | {"num_rows": len(source.rows), "fingerprint": data_fingerprint(source.rows)}


def _git(checkout: Path, *arguments: str) -> str | None:
    """What git prints; None where it fails or is not there."""
    command = ["git", "-C", str(checkout), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=GIT_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "surrogateescape")
