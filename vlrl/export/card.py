"""The model card: README.md with the header that a hub reads, and what the run's folder knows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from vlrl.data.open import HUB_NAME
from vlrl.export.curves import draw_curves
from vlrl.processors.messages import text_of
from vlrl.tracking.rollouts.paths import ROLLOUTS, train_files
from vlrl.tracking.rollouts.read import read_rollouts

CARD, CURVES, IMAGES = "README.md", "training_curves.png", "images"
TEMPLATES = Path(__file__).parent / "templates"
HEADER = re.compile(r"\A---\s*\n(.*?)\n---\s*(\n|\Z)", re.DOTALL)
NUM_EXAMPLES = 4
MAX_TEXT = 600
"""Characters of a text of an example that are shown."""


@dataclass(frozen=True, slots=True)
class CardExample:
    """A rollout of the card: its images as paths below the folder; `step` is of the weights that answered."""

    images: Sequence[str]
    question: str
    completion: str
    answer: str
    reward: float | None
    step: int


def write_card(out: Path, run_dir: Path, said: Mapping[str, Any], *, is_adapter: bool, name: str) -> Path:
    """Write README.md, and the curves and images that it shows.

    Args:
        out: the exported folder.
        run_dir: the run's.
        said: of `vlrl.export.provenance.provenance`.
        is_adapter: the folder has an adapter alone.
        name: of the model, for people.
    """
    has_curves = draw_curves(run_dir, out / CURVES)
    base = str(said["config"]["model"]["path"]) if is_adapter else str(said["base"])
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )  # Markdown, so nothing is escaped: texts of models stand in blocks that `_line` keeps closed
    text = environment.get_template("card.md.j2").render(
        header=_yaml(header(said, base, is_adapter=is_adapter)),
        name=name,
        said=said,
        base=base,
        is_adapter=is_adapter,
        evaluation=_by_step(said),
        examples=examples(run_dir, int(said["step"]), out),
        curves=CURVES if has_curves else "",
        recipe=_yaml(said["config"]),
    )
    (out / CARD).write_text(text, encoding="utf-8", errors="backslashreplace")
    return out / CARD


def header(said: Mapping[str, Any], base: str, *, is_adapter: bool) -> dict[str, Any]:
    """The card's metadata: base_model only with a hub name, license only if the base's card has one."""
    found: dict[str, Any] = {}
    license_header = base_card(base)
    for key in ("license", "license_name", "license_link"):
        if key in license_header:
            found[key] = license_header[key]
    if _is_hub_name(base):
        found["base_model"] = base
        found["base_model_relation"] = "adapter" if is_adapter else "finetune"
    found["library_name"] = "peft" if is_adapter else "transformers"
    found["pipeline_tag"] = "image-text-to-text"
    found["tags"] = ["vlrl", "vision-language", "reinforcement-learning"]
    trained_on = [source["name"] for source in said["config"].get("data", {}).get("train", [])]
    if datasets := [name for name in dict.fromkeys(trained_on) if _is_hub_name(name)]:
        found["datasets"] = datasets
    return found


def base_card(base: str) -> dict[str, Any]:
    """The metadata of a base model's card, of its folder or the hub; empty if there is none to be had."""
    path = Path(base) / CARD
    if not Path(base).is_dir():
        found = _hub_card(base) if _is_hub_name(base) else None
        if found is None:
            return {}
        path = found
    try:
        match = HEADER.match(path.read_text(encoding="utf-8"))
        tree = yaml.safe_load(match.group(1)) if match else {}
    except (OSError, yaml.YAMLError):
        return {}
    return tree if isinstance(tree, dict) else {}


def examples(run_dir: Path, step: int, out: Path) -> list[CardExample]:
    """A few answers of the weights closest to those exported; their images are copied."""
    after = run_dir / ROLLOUTS / "after.jsonl"
    records = read_rollouts(after)
    if not records or int(records[0].get("step", 0)) != step:
        before = [number for number in train_files(run_dir) if number <= step]
        records = read_rollouts(train_files(run_dir)[max(before)]) if before else records
    found: dict[str, CardExample] = {}
    for record in records:
        key = str(record.get("sample_id", ""))
        if key not in found and len(found) < NUM_EXAMPLES:
            found[key] = _example(record, run_dir, out)
    return list(found.values())


def _example(record: Mapping[str, Any], run_dir: Path, out: Path) -> CardExample:
    images = []
    for medium in record.get("media", []):
        source = run_dir / "media" / Path(str(medium.get("path", ""))).name
        if source.is_file():
            (out / IMAGES).mkdir(exist_ok=True)
            name = f"{IMAGES}/{source.stem[:16]}{source.suffix}"
            shutil.copyfile(source, out / name)
            images.append(name)
    users = [text_of(m) for m in record.get("messages", []) if m.get("role") == "user"]
    return CardExample(
        images,
        _line(users[-1] if users else ""),
        _line(str(record.get("completion", ""))),
        _line("" if record.get("answer") is None else str(record["answer"])),
        record.get("reward"),
        int(record.get("step", 0)),
    )


def _by_step(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for each in said["evaluation"]:
        row = rows.setdefault(each["step"], {"step": each["step"], "num_rows": each["num_rows"]})
        row[each["how"]] = each["accuracy"]
    return list(rows.values())


def _line(text: str) -> str:
    """A text in one indented code block of Markdown: lines are kept, and a fence in it ends nothing."""
    short = text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]} …"
    return short.replace("```", "'''").strip() or " "


def _yaml(tree: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(tree), sort_keys=False, allow_unicode=True).strip()


def _is_hub_name(name: str) -> bool:
    return bool(HUB_NAME.fullmatch(name)) and not Path(name).exists()


def _hub_card(repo: str) -> Path | None:
    """A repository's card, from the cache or the hub; None where neither has it."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled

    try:
        return Path(hf_hub_download(repo, CARD))
    except (HfHubHTTPError, LocalEntryNotFoundError, OfflineModeIsEnabled, OSError):
        return None
