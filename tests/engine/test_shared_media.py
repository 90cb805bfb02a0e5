"""Media on their way to an engine: large ones lie in shared memory once, small ones go with each request."""

from __future__ import annotations

from typing import Any

import pytest
from builders import random_image

from vlrl.engine.client.shared_media import SMALL_BYTES, SharedMedia, fetch_media
from vlrl.types import Media


class Store:
    """Ray's shared memory, counted."""

    def __init__(self) -> None:
        self.values: list[Any] = []

    def put(self, value: Any) -> int:
        self.values.append(value)
        return len(self.values) - 1

    def fetch_many(self, references: list[int]) -> list[Any]:
        return [self.values[number] for number in references]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Store:
    made = Store()
    monkeypatch.setattr("vlrl.cluster.put", made.put)
    monkeypatch.setattr("vlrl.cluster.fetch_many", made.fetch_many)
    return made


def image(side: int, seed: int = 0) -> Media:
    frames = random_image(side, side, seed)[None]
    return Media("image", f"{side} {seed}", frames, (side, side), (1, side // 14, side // 14), 1)


def test_a_large_medium_is_put_once(store: Store) -> None:
    shared, large = SharedMedia(2**30), image(224)
    for _ in range(3):
        references = shared.references([large, large])
    assert store.values == [large]
    assert fetch_media(references) == {large.sha256: large}


def test_a_small_medium_is_never_put(store: Store) -> None:
    shared, small, large = SharedMedia(2**30), image(28), image(224)
    assert small.frames.nbytes <= SMALL_BYTES < large.frames.nbytes
    references = shared.references([small, large])
    assert store.values == [large]
    assert references[small.sha256] is small
    assert fetch_media(references) == {small.sha256: small, large.sha256: large}


def test_the_least_recently_used_are_put_again(store: Store) -> None:
    first, second = image(224, 0), image(224, 1)
    shared = SharedMedia(first.frames.nbytes)
    for medium in (first, second, second, first):
        shared.references([medium])
    assert store.values == [first, second, first]
