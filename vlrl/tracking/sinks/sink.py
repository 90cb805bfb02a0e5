"""What a sink is: a service or a library that shows the numbers of a run."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from vlrl.errors import ConfigError
from vlrl.tracking.sinks.rollout_rows import RolloutRow


class Sink(Protocol):
    """A place for numbers, used by one thread.

    It is made in the driver's thread, where a missing package is a ConfigError. All that may fail or hang
    later belongs in the other methods: `vlrl.tracking.sinks.background` calls them.

    Attributes:
        name: for people.
    """

    name: str

    def open(self) -> None:
        """Connect, or open files; called first."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Take a step's numbers, in which not all are finite; may be called more than once for a step."""

    def log_rollouts(self, step: int, rows: Sequence[RolloutRow]) -> None:
        """Take some rollouts of a step, whose numbers came before; a later step's may have come too."""

    def close(self) -> None:
        """End after all that was logged."""


@dataclass(frozen=True, slots=True)
class SinkRun:
    """The run whose numbers a sink takes.

    Attributes:
        run_dir: the run's folder.
        first_step: that will be logged; above 0 the run is resumed.
    """

    run_dir: Path
    first_step: int

    def kept_id(self, sink: str) -> str | None:
        """The name that a sink has given a run which is resumed, if it was kept."""
        file = self._id_file(sink)
        return file.read_text(encoding="utf-8") if self.first_step and file.is_file() else None

    def keep_id(self, sink: str, name: str) -> None:
        """Keep the name that a sink has given the run, for when it is resumed."""
        self._id_file(sink).write_text(name, encoding="utf-8")

    def _id_file(self, sink: str) -> Path:
        return self.run_dir / f"{sink}_id"


def require_package(module: str, *, option: str, extra: str) -> Any:
    """Import a sink's package.

    Args:
        module: to import.
        option: of the config that asks for it, with its value.
        extra: of vlrl that installs it.

    Raises:
        ConfigError: if it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        key = option.partition("=")[0]
        raise ConfigError(
            f"{option} needs: pip install vlrl[{extra}], or set {key}=null ({error})"
        ) from error
