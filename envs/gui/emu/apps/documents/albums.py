"""Albums: which photos belong together; the favourites are the album without a name."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, TypeAlias

FAVOURITES = ""


class Album(NamedTuple):
    """Paths of photos under a name."""

    name: str
    paths: tuple[str, ...] = ()


Albums: TypeAlias = tuple[Album, ...]


def albums_of(data: object) -> Albums:
    """What the app keeps."""
    return data if isinstance(data, tuple) else ()


def paths_in(albums: Albums, name: str) -> tuple[str, ...]:
    """Photos of an album; none if there is no such album."""
    return next((album.paths for album in albums if album.name == name), ())


def with_paths(albums: Albums, name: str, paths: Collection[str]) -> Albums:
    """Albums with photos added to one, which is made if there is none of its name."""
    new = Album(name, tuple(dict.fromkeys((*paths_in(albums, name), *paths))))
    if any(album.name == name for album in albums):
        return tuple(new if album.name == name else album for album in albums)
    return (*albums, new)


def without_paths(albums: Albums, name: str, paths: Collection[str]) -> Albums:
    """Albums with photos taken out of one; the favourites are gone when they are empty."""
    left = (
        album._replace(paths=tuple(path for path in album.paths if path not in paths))
        if album.name == name
        else album
        for album in albums
    )
    return tuple(album for album in left if album.paths or album.name != FAVOURITES)


def renamed(albums: Albums, old: str, new: str) -> Albums:
    """Albums in which a photo has another path."""
    return tuple(
        album._replace(paths=tuple(new if path == old else path for path in album.paths)) for album in albums
    )
