"""The digit task: real scans, split once and for all, the same row for the same seed everywhere."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vlrl.envs.visual.questions.digit_sum import NUM_HELDOUT, SCANS, DigitSum, scan_numbers
from vlrl.errors import ConfigError
from vlrl.rewards.text.exact import answer_exact

SHA256 = "87ff0c9e40dc7e2c0e34e7257799c2e3f3aec1a016363bb11cad869ec428a826"
"""Of images and labels of scikit-learn 1.9.1's load_digits, as uint8."""


def fingerprint(row: Any) -> str:
    parts = row["messages"][0]["content"]
    digest = hashlib.sha256(repr((row["id"], row["answer"], row["target"], parts[-1])).encode())
    for part in parts[:-1]:
        digest.update(np.asarray(part["image"]).tobytes())
    return digest.hexdigest()


def test_the_split_is_disjoint_and_uses_every_scan() -> None:
    train, heldout = set(scan_numbers("train").tolist()), set(scan_numbers("heldout").tolist())
    assert not train & heldout
    assert train | heldout == set(range(1797))
    assert len(heldout) == NUM_HELDOUT


def test_the_scans_are_those_of_scikit_learn() -> None:
    digest = hashlib.sha256()
    with np.load(SCANS) as digits:
        assert digits["images"].shape == (1797, 8, 8)
        digest.update(digits["images"].tobytes())
        digest.update(digits["labels"].tobytes())
    assert digest.hexdigest() == SHA256


def test_every_digit_is_held_out_often_enough_to_be_measured() -> None:
    labels = np.load(SCANS)["labels"][scan_numbers("heldout")]
    assert min(np.bincount(labels, minlength=10)) >= 20


@pytest.mark.parametrize("split", ["train", "heldout"])
@pytest.mark.parametrize("num_digits", [1, 2, 3])
def test_a_row_shows_scans_of_its_split_and_asks_for_their_sum(split: Any, num_digits: int) -> None:
    """Read back from the images: at 8 pixels they are the scans themselves."""
    digits = np.load(SCANS)
    scans = (digits["images"] * (255 / 16)).round().astype(np.uint8)
    dataset = DigitSum(split, num_digits=num_digits, image_size=8)
    label_of = {scans[i].tobytes(): int(digits["labels"][i]) for i in scan_numbers(split)}
    for index in range(40):
        row = dataset[index]
        *images, text = row["messages"][0]["content"]
        assert text["type"] == "text"
        shown = [label_of[np.ascontiguousarray(p["image"][:, :, 0]).tobytes()] for p in images]
        assert len(shown) == num_digits
        assert row["metadata"]["digits"] == shown
        assert row["answer"] == str(sum(shown))
        assert row["target"] == f"<think>{'+'.join(map(str, shown))}</think><answer>{sum(shown)}</answer>"


def test_several_numbers_of_digits_come_in_turn() -> None:
    rows = [DigitSum(num_digits=[2, 1, 3])[index] for index in range(6)]
    assert [row["metadata"]["num_digits"] for row in rows] == [2, 1, 3, 2, 1, 3]
    assert [len(row["metadata"]["digits"]) for row in rows] == [2, 1, 3, 2, 1, 3]
    assert rows[0]["messages"][0]["content"][-1] == DigitSum()[0]["messages"][0]["content"][-1]
    with pytest.raises(ConfigError, match="num_digits"):
        DigitSum(num_digits=[2, 0])


def test_the_target_is_rewarded() -> None:
    for index in range(20):
        row = DigitSum()[index]
        assert answer_exact(row["target"], row["answer"]) == 1.0


def test_the_same_seed_gives_the_same_rows_in_a_fresh_process() -> None:
    code = (
        "import sys; from test_digit_sum import fingerprint;"
        "from vlrl.envs.visual.questions.digit_sum import DigitSum;"
        "print([fingerprint(DigitSum('heldout', seed=3)[i]) for i in (0, 11)])"
    )
    folder = Path(__file__).parent
    child = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, check=True
    )
    assert child.stdout.strip() == repr([fingerprint(DigitSum("heldout", seed=3)[i]) for i in (0, 11)])


def test_rows_differ_by_index_seed_and_split() -> None:
    rows = [
        DigitSum(split, seed=seed)[i] for split in ("train", "heldout") for seed in (0, 1) for i in (0, 1)
    ]  # type: ignore[arg-type]
    assert len({fingerprint(r) for r in rows}) == 8


def test_reading_rows_in_another_order_changes_nothing() -> None:
    one, two = DigitSum(), DigitSum()
    forwards = [fingerprint(one[i]) for i in range(5)]
    backwards = [fingerprint(two[i]) for i in reversed(range(5))]
    assert forwards == backwards[::-1]


def test_ids_are_unique() -> None:
    dataset = DigitSum(num_rows=64)
    assert len(dataset) == 64
    assert len({dataset[i]["id"] for i in range(64)}) == 64


def test_images_are_enlarged_grey_scans() -> None:
    image = DigitSum(image_size=56)[0]["messages"][0]["content"][0]["image"]
    assert image.shape == (56, 56, 3)
    assert image.dtype == np.uint8
    assert (image[:, :, 0] == image[:, :, 1]).all()
    assert image.max() > 200
    assert image.min() < 50


def test_an_unknown_split_is_refused() -> None:
    with pytest.raises(ConfigError, match="'test' is not one of train, heldout"):
        DigitSum("test")  # type: ignore[arg-type]


def test_the_corpus_holds_every_word_of_the_task() -> None:
    texts = DigitSum().corpus(30)
    assert len(texts) == 30
    assert all("<think>" in t and "assistant" in t for t in texts)
