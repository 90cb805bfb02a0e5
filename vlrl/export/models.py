"""Exported models in a folder, and where each comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlrl.errors import ConfigError
from vlrl.export.provenance import EXPORT_FILE, figure_of, read_provenance


@dataclass(frozen=True, slots=True)
class ExportedModel:
    """A model as a list shows it.

    Attributes:
        folder: of the model.
        name: that it was exported under.
        kind: "model" or "adapter".
        base: the oldest model known that it comes from.
        run: the folder of its run.
        step: weight updates that it has had.
        accuracy: greedy, held out; None if it was not measured at this step.
        parent: the model that its run began with.
        parent_export: the name of the listed model that this is, "" if it is none of them.
    """

    folder: Path
    name: str
    kind: str
    base: str
    run: str
    step: int
    accuracy: float | None
    parent: str
    parent_export: str = ""


def find_models(folder: Path) -> list[ExportedModel]:
    """All exported models in a folder and the folders below it, by name.

    Raises:
        ConfigError: if there is no such folder.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder; give the one that models were exported to")
    said = {path.parent: read_provenance(path.parent) for path in sorted(folder.rglob(EXPORT_FILE))}
    known = {where: of_model for where, of_model in said.items() if of_model is not None}
    origins = {(str(m["run"]), int(m["step"])): str(m["name"]) for m in known.values()}
    names = {str(where.resolve()): str(of_model["name"]) for where, of_model in known.items()}
    found = [_model(where, of_model, names, origins) for where, of_model in known.items()]
    return sorted(found, key=lambda model: (model.name, str(model.folder)))


def show_model(folder: Path) -> dict[str, Any]:
    """What an exported folder says of itself.

    Raises:
        ConfigError: if it is not one.
    """
    said = read_provenance(folder)
    if said is None:
        raise ConfigError(f"{folder} has no {EXPORT_FILE}; give a folder that `vlrl export` wrote")
    return said


def ancestry_lines(said: Mapping[str, Any]) -> list[str]:
    """A model's chain for people, the model first, then each run with what it began with."""
    lines = [f"{said['name']}  ({said['kind']}, step {said['step']})"]
    for depth, entry in enumerate(said.get("ancestry", [])):
        indent = "  " * depth
        print_of = f", fingerprint {entry['fingerprint']}" if "fingerprint" in entry else ""
        lines += [f"{indent}└ run {entry['name']}", f"{indent}  └ began with {entry['model']}{print_of}"]
    return lines


def _model(
    folder: Path, said: Mapping[str, Any], names: Mapping[str, str], origins: Mapping[tuple[str, int], str]
) -> ExportedModel:
    ancestry = said.get("ancestry", [])
    parent = str(ancestry[0]["model"]) if ancestry else ""
    listed = names.get(str(Path(parent).resolve()), "") if parent else ""
    if not listed and len(ancestry) > 1:  # a run that goes on from RUN/model, which was exported as well
        of_run = [name for (run, _), name in sorted(origins.items()) if run == ancestry[1]["run"]]
        listed = of_run[-1] if of_run else ""
    return ExportedModel(
        folder=folder,
        name=str(said["name"]),
        kind=str(said["kind"]),
        base=str(said["base"]),
        run=str(said["run"]),
        step=int(said["step"]),
        accuracy=figure_of(said),
        parent=parent,
        parent_export=listed,
    )
