"""A task's evaluator by desktop_env's getters and metrics, as DesktopEnv.evaluate has it, but for failures.

What fails on the way is raised; a file that the machine does not have, or that is not what its name says, is
the agent's result: 0.
"""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import tarfile
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

from desktop import Desktop, Wire
from stand_ins import MissingPackage

UNREADABLE = (
    *(UnicodeDecodeError, json.JSONDecodeError, SyntaxError, EOFError),
    *(zipfile.BadZipFile, tarfile.TarError, shutil.ReadError, sqlite3.DatabaseError, csv.Error),
)
UNREADABLE_NAMES = frozenset(
    {
        *("PackageNotFoundError", "InvalidFileException", "UnidentifiedImageError"),
        *("PdfReadError", "PdfStreamError", "FileDataError", "EmptyFileError", "YAMLError"),
    }
)
"""What readers of files raise for one that is something else; names where the package may be missing."""
PORTS = {"chrome": ("chromium_port", "Chrome's debugging port"), "vlc": ("vlc_port", "VLC's web interface")}


class EvaluatorFailure(Exception):
    """A getter or a metric raised: there is no result."""


class Part(NamedTuple):
    """One metric of an evaluator.

    Attributes:
        metric: name of it.
        result: what it judges: a getter's config.
        expected: what it compares that with, or nothing.
        options: of the metric.
    """

    metric: str
    result: Mapping[str, Any]
    expected: Mapping[str, Any] | None
    options: Mapping[str, Any]


class Evaluation:
    """Evaluators over one machine."""

    def __init__(
        self, desktop: Desktop, wire: Wire, metrics: Any, getters: Any, wants: Mapping[str, Any]
    ) -> None:
        """Take the machine, the package's two modules, and what each getter wants: name → `Reach.wants`."""
        self._desktop, self._wire = desktop, wire
        self._metrics, self._getters, self._wants = metrics, getters, wants

    def score(self, evaluator: Mapping[str, Any]) -> float:
        """Score the task as it stands.

        Raises:
            MachineFailure: if the machine fails.
            EvaluatorFailure: if a getter or a metric does.
            MissingPackage: if one needs a package that is not installed.
        """
        is_or, found = evaluator.get("conj", "and") == "or", list[float]()
        for part in parts_of(evaluator):
            found.append(self._measured(part))
            if found[-1] == float(is_or):
                return found[-1]
        return max(found) if is_or else sum(found) / len(found)

    def _measured(self, part: Part) -> float:
        self._wire.num_missing = 0
        try:
            result = self._got(part.result)
        except FileNotFoundError:
            self._wire.check()
            return 0.0
        except EvaluatorFailure:
            if self._wire.num_missing:
                return 0.0
            raise
        has_result = result is not None and not self._wire.num_missing
        expected = [] if part.expected is None else [self._got(part.expected)]
        metric = getattr(self._metrics, part.metric)
        try:
            return float(metric(result, *expected, **part.options))
        except MissingPackage:
            raise
        except Exception as error:
            if not has_result or (_is_unreadable(error) and _reads(metric, expected, part.options)):
                return 0.0
            raise EvaluatorFailure(f"{part.metric} raised {type(error).__name__}: {error}") from error

    def _got(self, config: Mapping[str, Any]) -> Any:
        kind = config["type"]
        for want, (port, what) in PORTS.items():
            if want in self._wants[kind]:
                self._desktop.check_port(getattr(self._desktop, port), what)
        try:
            if kind == "cloud_file":
                self._desktop.fetch(config)
            got = getattr(self._getters, f"get_{kind}")(self._desktop, config)
        except (FileNotFoundError, MissingPackage):
            raise
        except Exception as error:
            self._wire.check()
            raise EvaluatorFailure(f"{kind} raised {type(error).__name__}: {error}") from error
        self._wire.check()
        return got


def parts_of(evaluator: Mapping[str, Any]) -> list[Part]:
    """An evaluator's metrics; each of its lists has one entry for each."""
    if not isinstance(evaluator["func"], list):
        expected = evaluator.get("expected") or None
        return [Part(evaluator["func"], evaluator["result"], expected, evaluator.get("options") or {})]
    number = len(evaluator["func"])
    expected = evaluator.get("expected") or [None] * number
    options = evaluator.get("options") or [{}] * number
    rows = zip(evaluator["func"], evaluator["result"], expected, options, strict=True)
    return [Part(func, result, wanted or None, chosen or {}) for func, result, wanted, chosen in rows]


def _is_unreadable(error: Exception) -> bool:
    names = {kind.__name__ for kind in type(error).__mro__}
    return isinstance(error, UNREADABLE) or bool(names & UNREADABLE_NAMES)


def _reads(metric: Any, expected: list[Any], options: Mapping[str, Any]) -> bool:
    """The metric works where the result is as it should be: then what it could not read was the result."""
    try:
        metric(*expected, *expected, **options)
    except Exception:  # of the package's metric: asked only whether it works
        return not expected or not isinstance(expected[0], str | list)
    return True
