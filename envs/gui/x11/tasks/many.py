"""Work on many files at once: by pattern, by kind, by content; trees, archives and permissions."""

from __future__ import annotations

import io
import tarfile
import zlib
from collections.abc import Mapping

import numpy as np

from vlrl.envs.gui.actions import Answer, OpenApp, TypeText
from vlrl.envs.gui.x11.sandbox.home import EXECUTABLE, FOLDER, Tree
from vlrl.envs.gui.x11.task import DesktopTask, Predicate, Setup
from vlrl.envs.gui.x11.tasks.words import NOUNS, draw, gone, has, in_terminal, keys, lines, names, sentences

_FILES, _TERMINAL = ("pcmanfm",), ("xterm",)
_KINDS = {"txt": "texts", "csv": "tables", "log": "logs", "md": "notes"}
_MOST_UNPACKED = 1 << 20


def _written(rng: np.random.Generator, paths: list[str]) -> dict[str, bytes]:
    return {path: lines(sentences(rng, 2)) for path in paths}


def _moved(files: Mapping[str, bytes], moves: Mapping[str, str]) -> dict[str, Predicate]:
    """Each file is where it shall be, and none where it was."""
    return {f"{old} is {new}": has(new, files[old]) for old, new in moves.items()} | {
        "none is where it was": lambda tree: all(gone(old)(tree) for old in moves)
    }


def _rename_all(rng: np.random.Generator, level: int) -> Setup:
    old, new, *others = draw(rng, NOUNS, 5)
    numbers = [int(n) for n in rng.choice(np.arange(10, 100), 2 * level, replace=False)]
    moves = {f"{old}-{n}.txt": f"{new}-{n}.txt" for n in numbers}
    files = _written(rng, [*moves, *(f"{other}.txt" for other in others)])
    return Setup(
        goal=f"Rename every file whose name begins with {old}- so that it begins with {new}- instead.",
        oracle=in_terminal(f"for n in {' '.join(map(str, numbers))}; do mv {old}-$n.txt {new}-$n.txt; done"),
        files=files,
        milestones=_moved(files, moves),
        changed=[*moves, *moves.values()],
    )


def _by_kind(rng: np.random.Generator, level: int) -> Setup:
    kinds = draw(rng, list(_KINDS), 1 + level)
    paths = [f"{stem}.{kinds[n % len(kinds)]}" for n, stem in enumerate(draw(rng, NOUNS, 4 * level))]
    moves = {path: f"{_KINDS[path.rpartition('.')[2]]}/{path}" for path in paths}
    files = {f"{_KINDS[kind]}/": b"" for kind in kinds} | _written(rng, paths)
    said = ", ".join(f"those ending in .{kind} into {_KINDS[kind]}" for kind in kinds)
    return Setup(
        goal=f"Move the files of the home folder into its folders: {said}.",
        oracle=in_terminal(*(f"mv *.{kind} {_KINDS[kind]}" for kind in kinds)),
        files=files,
        milestones=_moved(files, moves),
        changed=[*moves, *moves.values()],
    )


def _make_tree(rng: np.random.Generator, level: int) -> Setup:
    tops = draw(rng, NOUNS, level)
    paths = [f"{top}/{name}" for top in tops for name in names(rng, 2)]
    if level == 3:
        paths.append(f"{paths[0]}/{names(rng, 1)[0]}")
    return Setup(
        goal=f"Make these folders, one in the other: {', '.join(paths)}.",
        oracle=in_terminal(f"mkdir -p {' '.join(paths)}"),
        milestones={f"{path} is there": has(path, FOLDER) for path in paths},
        changed=[*tops, *(path for path in paths), *(path.rpartition("/")[0] for path in paths)],
    )


def _copy_folder(rng: np.random.Generator, level: int) -> Setup:
    source, place, *others = names(rng, 4)
    inside = [f"{source}/{name}.txt" for name in names(rng, 2 * level)]
    files = {f"{place}/": b"", **_written(rng, [*inside, *(f"{other}.txt" for other in others)])}
    return Setup(
        goal=f"Copy the folder {source} with all that is in it into the folder {place}.",
        oracle=[
            *(OpenApp("pcmanfm"), TypeText(source), *keys("escape", "ctrl+c", "ctrl+l", "ctrl+a")),
            *(TypeText(f"/home/user/{place}\n"), *keys("ctrl+v")),
        ],
        files=files,
        milestones={f"{path} is there, too": has(f"{place}/{path}", files[path]) for path in inside},
        changed=[f"{place}/{source}", *(f"{place}/{path}" for path in inside)],
    )


def _swap(rng: np.random.Generator, level: int) -> Setup:
    stems = draw(rng, NOUNS, 1 + level)
    files = _written(rng, [f"{stem}.txt" for stem in stems])
    paths = list(files)
    after = dict(zip(paths, [*paths[1:], paths[0]], strict=True))
    said = ", ".join(f"what is now {old} becomes {new}" for old, new in after.items())
    last = f"mv {paths[-1]} x; " + "; ".join(f"mv {old} {after[old]}" for old in paths[-2::-1])
    return Setup(
        goal=f"Change the names of these files round: {said}.",
        oracle=in_terminal(f"{last}; mv x {paths[0]}"),
        files=files,
        milestones={f"{new} is what was {old}": has(new, files[old]) for old, new in after.items()},
        changed=[*paths, "x"],
    )


def _delete_empty(rng: np.random.Generator, level: int) -> Setup:
    stems = draw(rng, NOUNS, 5 * level)
    empty = [f"{stem}.txt" for stem in stems[: 1 + level]]
    files = dict.fromkeys(empty, b"") | _written(rng, [f"{stem}.txt" for stem in stems[1 + level :]])
    return Setup(
        goal="Delete the files in the home folder that are empty (0 bytes), and no other.",
        oracle=in_terminal("find . -maxdepth 1 -name '*.txt' -empty -delete"),
        files=files,
        milestones={f"{path} is gone": gone(path) for path in empty},
        changed=empty,
    )


def _largest(rng: np.random.Generator, level: int) -> Setup:
    folder, *stems = draw(rng, NOUNS, 5 + 8 * level)
    sizes = rng.choice(np.arange(3, 90), len(stems), replace=False)
    files = {f"{folder}/{s}.txt": lines(sentences(rng, int(n))) for s, n in zip(stems, sizes, strict=True)}
    best = max(files, key=lambda path: len(files[path])).rpartition("/")[2]
    return Setup(
        goal=f"Which file in the folder {folder} is the largest? Answer with its name.",
        oracle=[*in_terminal(f"ls -S {folder} | head -1"), Answer(best)],
        files=files,
        answer=best,
    )


def _twin(rng: np.random.Generator, level: int) -> Setup:
    name, *stems = draw(rng, NOUNS, 5 + 8 * level)
    files = _written(rng, [f"{stem}.txt" for stem in [name, *stems]])
    same = f"{stems[int(rng.integers(len(stems)))]}.txt"
    files[same] = files[f"{name}.txt"]
    return Setup(
        goal=f"Which other file in the home folder has the same content as {name}.txt? Answer with its name.",
        oracle=[*in_terminal(f"for f in *; do cmp -s $f {name}.txt && echo $f; done"), Answer(same)],
        files=files,
        answer=same,
    )


def _pack(rng: np.random.Generator, level: int) -> Setup:
    folder, *stems = draw(rng, NOUNS, 2 + 2 * level)
    files = _written(rng, [f"{folder}/{stem}.txt" for stem in stems])
    archive = f"{folder}.tar.gz"
    return Setup(
        goal=f"Pack the folder {folder} into an archive {archive} in the home folder; the folder stays.",
        oracle=in_terminal(f"tar czf {archive} {folder}"),
        files=files,
        milestones={
            "the archive is there": has(archive),
            "it has the files": lambda tree: _unpacked(tree, archive) == files,
        },
        changed=[archive],
    )


def _unpacked(tree: Tree, path: str) -> dict[str, bytes]:
    """Plain files in an archive that the agent made: none of one that is broken or too large."""
    unzip = zlib.decompressobj(wbits=31)
    try:
        data = unzip.decompress(tree.get(path, b""), _MOST_UNPACKED)
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            members = [member for member in archive.getmembers() if member.isreg() and not member.issparse()]
            if sum(member.size for member in members) > len(data):
                return {}
            read = ((member.name, archive.extractfile(member)) for member in members)
            return {name.removeprefix("./"): file.read() for name, file in read if file}
    except (zlib.error, tarfile.TarError, OSError, EOFError, ValueError):
        return {}


def _unpack(rng: np.random.Generator, level: int) -> Setup:
    folder, archive, *stems = draw(rng, NOUNS, 3 + 2 * level)
    inside = _written(rng, [f"{folder}/{stem}.txt" for stem in stems])
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.USTAR_FORMAT) as packed:
        for path, content in inside.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return Setup(
        goal=f"Unpack the archive {archive}.tar.gz in the home folder; the archive stays.",
        oracle=in_terminal(f"tar xzf {archive}.tar.gz"),
        files={f"{archive}.tar.gz": buffer.getvalue()},
        milestones={f"{path} is there": has(path, content) for path, content in inside.items()},
        changed=[folder, *inside],
    )


def _make_executable(rng: np.random.Generator, level: int) -> Setup:
    stems = draw(rng, NOUNS, 4 * level)
    scripts = [f"{stem}.sh" for stem in stems[: 1 + level]]
    files = {script: lines(["#!/bin/sh", f"echo {script}"]) for script in scripts}
    files |= _written(rng, [f"{stem}.txt" for stem in stems[1 + level :]])
    return Setup(
        goal="Make every file in the home folder whose name ends in .sh executable, and no other.",
        oracle=in_terminal("chmod +x *.sh"),
        files=files,
        milestones={f"{script} can be executed": has(script + EXECUTABLE) for script in scripts},
        changed=[script + EXECUTABLE for script in scripts],
    )


TASKS = [
    DesktopTask("many_rename", _TERMINAL, _rename_all),
    DesktopTask("many_by_kind", _TERMINAL, _by_kind),
    DesktopTask("many_make_tree", _TERMINAL, _make_tree),
    DesktopTask("many_copy_folder", _FILES, _copy_folder),
    DesktopTask("many_swap", _TERMINAL, _swap),
    DesktopTask("many_delete_empty", _TERMINAL, _delete_empty),
    DesktopTask("many_largest", _TERMINAL, _largest),
    DesktopTask("many_twin", _TERMINAL, _twin),
    DesktopTask("archive_pack", _TERMINAL, _pack),
    DesktopTask("archive_unpack", _TERMINAL, _unpack),
    DesktopTask("many_make_executable", _TERMINAL, _make_executable),
]
