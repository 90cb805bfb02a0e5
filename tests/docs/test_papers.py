"""docs/papers.md has a row for all that is built in, and every row leads to a file, a preset and a test."""

from __future__ import annotations

import re
from pathlib import Path

from vlrl.config.algorithm import AlgorithmConfig
from vlrl.config.presets import PRESETS
from vlrl.registry import BUILT_IN

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| (.+) \| `(\S+)` \| `(.+)` \| `(\S+)::(\w+)` \| (.+) \|$")
ROWS = [
    match.groups()
    for line in (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").splitlines()
    if (match := ROW.match(line))
]


def test_every_row_leads_somewhere() -> None:
    assert len(ROWS) >= len(PRESETS)
    for _, file, preset, test_file, test, _ in ROWS:
        assert (ROOT / file).is_file(), file
        assert f"def {test}(" in (ROOT / test_file).read_text(encoding="utf-8"), test
        key = re.fullmatch(r"\((\w+)(?:: \w+)?\)", preset)  # set by hand
        sections = {"default", "sampler", "preferences", "replay", "generator", "trainer"}
        known = {*sections, *AlgorithmConfig.model_fields}
        assert preset in PRESETS or (key and key[1] in known), preset


def test_every_preset_and_every_file_of_an_algorithm_has_a_row() -> None:
    assert {preset for _, _, preset, _, _, _ in ROWS} >= set(PRESETS)
    kinds = ("advantages", "losses", "corrections", "regularizers", "selections", "preferences")
    targets = [BUILT_IN[kind][name] for kind in kinds for name in BUILT_IN[kind]]
    files = {target.partition(":")[0].replace(".", "/") + ".py" for target in targets}
    assert files <= {file for _, file, _, _, _, _ in ROWS}


def test_a_presets_paper_is_in_its_row() -> None:
    for title, _, preset, _, _, _ in ROWS:
        if preset in PRESETS:
            assert re.search(r"\d{4}\.\d{5}", PRESETS[preset].paper)[0] in title, preset  # type: ignore[index]
