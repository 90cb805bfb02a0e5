"""The virtual disk: paths as "/Documents/notes.txt", folders without a slash at the end, "/" the root."""

from __future__ import annotations

from typing import Any

from vlrl.envs.gui.emu.state import File, Files

HOME_FOLDERS = ("/Desktop", "/Documents", "/Downloads", "/Pictures")


def empty_disk() -> Files:
    """The folders that every desktop has."""
    return {path: File(None) for path in HOME_FOLDERS}


def parent(path: str) -> str:
    """The folder that something is in."""
    return path.rpartition("/")[0] or "/"


def base(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def join(folder: str, name: str) -> str:
    """The path of something in a folder."""
    return f"{folder.rstrip('/')}/{name}"


def is_folder(files: Files, path: str) -> bool:
    """Whether there is a folder of this path."""
    file = files.get(path)
    return path == "/" or (file is not None and file.content is None)


def listing(files: Files, folder: str) -> list[str]:
    """Paths of what is directly in a folder: folders first, each by name."""
    start = folder.rstrip("/") + "/"
    found = [path for path in files if path.startswith(start) and "/" not in path[len(start) :]]
    return sorted(found, key=lambda path: (files[path].content is not None, base(path).lower(), path))


def write(files: Files, path: str, content: Any, time_ms: int) -> Files:
    """Files with a file (a folder where content is None) made or overwritten, and the folders it is in."""
    added = {path: File(content, time_ms)}
    folder = parent(path)
    while folder != "/" and folder not in files:
        added[folder] = File(None, time_ms)
        folder = parent(folder)
    return {**files, **added}


def delete(files: Files, path: str) -> Files:
    """Files without a file, or without a folder and all that is in it."""
    return {known: file for known, file in files.items() if not _within(known, path)}


def move(files: Files, path: str, to: str) -> Files:
    """Files with a file or folder moved to another path; unchanged if it would go into itself."""
    if _within(to, path) or path not in files:
        return files
    return {**delete(delete(files, to), path), **_at(files, path, to)}


def copy(files: Files, path: str, to: str) -> Files:
    """Files with a file or folder copied to another path; unchanged if it would go into itself."""
    if _within(to, path) or path not in files:
        return files
    return {**delete(files, to), **_at(files, path, to)}


def _at(files: Files, path: str, to: str) -> dict[str, File]:
    return {to + known[len(path) :]: file for known, file in files.items() if _within(known, path)}


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
