"""Imports of large libraries leave the garbage collector as it was."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from vlrl.process.imports import large_imports


class Node:
    """May be part of a cycle."""

    itself: Node


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    enabled = gc.isenabled()
    yield
    gc.unfreeze()
    (gc.enable if enabled else gc.disable)()


@pytest.mark.parametrize("enabled", [True, False])
def test_nothing_is_collected_within_and_everything_as_before_afterwards(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    with pytest.raises(ImportError), large_imports():
        assert not gc.isenabled()
        raise ImportError
    assert gc.isenabled() == enabled


def test_later_collections_pass_over_what_was_imported_and_no_more() -> None:
    gc.unfreeze()
    with large_imports():
        pass
    assert gc.get_freeze_count() > 1000
    later = Node()
    later.itself = later
    alive = weakref.ref(later)
    del later
    gc.collect()
    assert alive() is None
