"""Where the images of kept rollouts are written: by whoever sees the run's folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from kept_rollouts import FakeProcessor, make_group
from PIL import Image

from vlrl.batch import TokenValues
from vlrl.run.players.tables import OutcomeNumbers, tabulated
from vlrl.storage.shared_folder import SharedFile
from vlrl.tracking.rollouts.records import images_of, write_encoded


def media_in(run_dir: Path) -> dict[str, np.ndarray[tuple[int, ...], np.dtype[np.uint8]]]:
    return {file.name: np.asarray(Image.open(file)) for file in (run_dir / "media").glob("*")}


@pytest.mark.parametrize("here", [b"the driver's", b"of another folder", None])
def test_images_are_written_or_sent_to_who_can(tmp_path: Path, here: bytes | None) -> None:
    lock = tmp_path / "run.lock"
    lock.write_bytes(here or b"")
    if here is None:
        lock.unlink()
    run_file = SharedFile(lock, b"the driver's")
    numbers = OutcomeNumbers(0, 0, 0, 1)
    group, nothing = make_group(), TokenValues.joined([])
    kept = tabulated([[group]], [numbers], nothing, FakeProcessor(), tmp_path, run_file)
    assert kept.table.num_rows == 2
    driver = tmp_path
    if here == b"the driver's":
        assert not kept.images
    else:
        driver = tmp_path / "driver"
        assert len(kept.images) == 2 and not (tmp_path / "media").exists()
    for _ in range(2):  # the second time all are there
        write_encoded(driver, kept.images)
    paths = {medium["path"] for of_row in kept.table.column("media").to_pylist() for medium in of_row}
    assert {f"media/{name}" for name in media_in(driver)} == paths
    for medium in images_of([group]):
        assert np.array_equal(media_in(driver)[f"{medium.sha256}.png"], medium.frames[0])
