"""Write the table of docs/families.md from the registry, the processors and the engines' recorded passes.

    python tools/families_page.py        after a new family, or new passes of its engine tests

What a family is called and how it takes images is said here. Whether it takes video and audio its processor
says, and tests/slow_ledger.json when an engine last agreed with the trainer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from slow_proofs import LEDGER, Ledger, read_ledger

from vlrl.processors.family import FamilyProcessor
from vlrl.registry import BUILT_IN, resolve

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "families.md"
SUITE = "tests/contract/test_families_engines.py"
TABLE = re.compile(
    r"(?<=<!-- families: tools/families_page.py -->\n).*?(?=<!-- end of families -->)", re.DOTALL
)
HEAD = "| family | `model_type` | images | video | audio | engine agreed on |\n|---|---|---|---|---|---|\n"
ANY_SIZE = "any number, any size"


@dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
        name: of the family.
        types: registered processors.
        images: how it takes them.
        video: what is to be said of its videos, if it takes them.
        engines: families of the suite; the types, if none is given.
    """

    name: str
    types: tuple[str, ...]
    images: str = ANY_SIZE
    video: str = ""
    engines: tuple[str, ...] = ()


ROWS = (
    Row("Qwen2-VL, Qwen2.5-VL", ("qwen2_vl", "qwen2_5_vl")),
    Row("Qwen2.5-Omni, its thinker", ("qwen2_5_omni",)),
    Row("Qwen3-VL, dense and MoE", ("qwen3_vl", "qwen3_vl_moe"), video="with written timestamps"),
    Row("Qwen3.5, dense and MoE", ("qwen3_5", "qwen3_5_moe"), video="with written timestamps"),
    Row("GLM-4.1V, GLM-4.6V-Flash", ("glm4v",), video="of GLM-4.1V alone, with written seconds"),
    Row("GLM-4.5V, GLM-4.6V (MoE)", ("glm4v_moe",), video="of GLM-4.5V alone, with written seconds"),
    Row(
        "InternVL3, InternVL3.5, dense and MoE (Hugging Face format)",
        ("internvl",),
        "tiles and a thumbnail",
        "numbered frames of one tile",
        engines=("internvl", "internvl3_5", "internvl3_5_moe"),
    ),
    Row("MiniCPM-V 4.6", ("minicpmv4_6",), "numbered; whole and in slices", "numbered, frames as images are"),
    Row("Mistral Small 3.1, 3.2", ("mistral3",), "any number, whole patches"),
    Row("Idefics 3", ("idefics3",), "tiles by row and column"),
    Row("SmolVLM, SmolVLM2", ("smolvlm",), "tiles by row and column"),
    Row("LLaVA-OneVision", ("llava_onevision",), "tiles on the best grid", "frames of one tile"),
    Row("LLaVA-NeXT (LLaVA 1.6)", ("llava_next",), "tiles on the best grid"),
    Row(
        "Gemma 4 E2B, E4B",
        ("gemma4",),
        "any number, all enlarged to nearly the same number of tokens",
        "with written minutes and seconds",
    ),
)


def table(rows: Sequence[Row], ledger: Ledger, quick: Sequence[str]) -> str:
    """The table.

    Args:
        rows: of all registered processors.
        ledger: recorded passes.
        quick: families of the suite that `make test` runs every time.

    Raises:
        SystemExit: if a processor is in no row or in two, or a family of the suite is in no row.
    """
    _require_each("processors", [name for row in rows for name in row.types], BUILT_IN["processors"])
    recorded = [
        match[1] for proof in ledger if (match := re.fullmatch(rf"{re.escape(SUITE)}\[(\w+)\]", proof))
    ]
    _require_each(
        f"families of {SUITE}", [name for row in rows for name in _engines(row)], [*quick, *recorded]
    )
    passes = {name: last.passed[:10] if (last := ledger[f"{SUITE}[{name}]"]) else "" for name in recorded}
    return HEAD + "".join(f"| {' | '.join(_cells(row, passes))} |\n" for row in rows)


def _cells(row: Row, passes: Mapping[str, str]) -> list[str]:
    """The cells of a row; passes are days, "" for never, of the families that are recorded."""
    processors = [resolve("processors", name) for name in row.types]
    takes_video = {processor.takes_video for processor in processors}
    hears = all(processor.hearing is not FamilyProcessor.hearing for processor in processors)
    if len(takes_video) > 1 or (row.video and takes_video == {False}):
        raise SystemExit(
            f"{row.name}: its processors do not take video as its row in tools/families_page.py says"
        )
    video = (
        ", ".join(filter(None, ["yes", row.video])) if takes_video == {True} else "no: give frames as images"
    )
    days: dict[str, list[str]] = {}
    for name in _engines(row):
        day = "in every `make test`" if name not in passes else passes[name] or "not run"
        days.setdefault(day, []).append(f"`{name}`")
    only = len(days) == 1
    agreed = "; ".join(day if only else f"{', '.join(names)}: {day}" for day, names in days.items())
    return [
        row.name,
        ", ".join(f"`{name}`" for name in row.types),
        row.images,
        video,
        "yes" if hears else "no",
        agreed,
    ]


def _engines(row: Row) -> tuple[str, ...]:
    return row.engines or row.types


def _require_each(what: str, given: Sequence[str], wanted: Sequence[str] | Mapping[str, str]) -> None:
    """Raise SystemExit if they are not the same, each once."""
    if sorted(given) != sorted(wanted):
        wrong = sorted({*given} ^ {*wanted}) or sorted({name for name in given if given.count(name) > 1})
        raise SystemExit(f"rows of tools/families_page.py and {what} differ: {', '.join(wrong)}")


def quick_families(suite: str) -> list[str]:
    """The families of the suite's text that are not marked slow: the plain names in its FAMILIES."""
    for node in ast.parse(suite).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "FAMILIES":
            assert isinstance(node.value, ast.List)
            return [item.value for item in node.value.elts if isinstance(item, ast.Constant)]
    raise SystemExit(f"{SUITE} has no list FAMILIES")


def rewritten(page: str, ledger: Ledger, quick: Sequence[str]) -> str:
    """The page with its table made again; arguments as for `table`."""
    if len(TABLE.findall(page)) != 1:
        raise SystemExit(
            f"{PAGE.name} has no place for the table: <!-- families: … --> and <!-- end of families -->"
        )
    return TABLE.sub(lambda _: table(ROWS, ledger, quick), page)


def current() -> str:
    """The page as it should be now."""
    quick = quick_families((ROOT / SUITE).read_text(encoding="utf-8"))
    return rewritten(PAGE.read_text(encoding="utf-8"), read_ledger(ROOT / LEDGER), quick)


if __name__ == "__main__":
    PAGE.write_text(current(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
