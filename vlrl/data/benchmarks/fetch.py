"""Fetch a benchmark's files from the hub: one revision, compared with the hub's checksums."""

from __future__ import annotations

import fnmatch
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vlrl.data.benchmarks.published import PUBLISHED, Published
from vlrl.errors import ConfigError, DataError

DEFAULT_ENDPOINT = "https://huggingface.co"
RECORD = "vlrl-data.lock"
"""What was fetched, of which revision, with the checksums, in JSON; readers of *.json pass it over."""
LEFT_BY_HUB = Path(".cache") / "huggingface"
"""What huggingface_hub leaves in the folder: its own notes, and parts of files after a kill."""
BLOCK = 1 << 22


@dataclass(frozen=True, slots=True)
class HubFile:
    """A file of a revision.

    Attributes:
        name: in the repo.
        size: in bytes.
        sha256: of a large file's content, else None.
        blob: git's SHA-1 of a small file.
    """

    name: str
    size: int
    sha256: str | None
    blob: str | None

    def fits(self, path: Path) -> bool:
        """Whether a file on disk has the content that the hub names."""
        if path.stat().st_size != self.size:
            return False
        if self.sha256 is None and self.blob is None:
            return True
        sha = hashlib.sha256() if self.sha256 else hashlib.sha1(f"blob {self.size}\0".encode())
        with path.open("rb") as file:
            while block := file.read(BLOCK):
                sha.update(block)
        return sha.hexdigest() == (self.sha256 or self.blob)


def fetch(
    name: str,
    folder: Path,
    *,
    revision: str = "main",
    only: Sequence[str] = (),
    tell: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Fetch what is missing of a benchmark.

    A file whose connection breaks goes on where it was. After a kill, files that are whole are not fetched
    again; the one that was not is fetched from its beginning (huggingface_hub forgets what it had of it).

    Args:
        name: of the benchmark.
        folder: to write to; made if it is not there.
        revision: a branch, tag or commit of the dataset; the result names the commit.
        only: patterns of files; () takes those that are read.
        tell: called with each line for people, the licence before anything is fetched.

    Returns:
        name, repo, revision (the commit), license, path, files (name → checksum), num_bytes.

    Raises:
        ConfigError: for an unknown name, or patterns that fit no file.
        DataError: if the hub cannot be reached, has no such dataset or revision, or sends something else
            than it names; and for a benchmark that is on no hub, with its page.
    """
    if name not in PUBLISHED:
        raise ConfigError(f"there is no benchmark {name!r}; there are {', '.join(PUBLISHED)}")
    published = PUBLISHED[name]
    if not published.repo:
        raise DataError(
            f"{name} is on no hub: fetch it from {published.page}, and give its folder as options.path; "
            "docs/benchmark_sets.md says which files belong there"
        )
    endpoint = os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT
    commit, terms, files = _ask(published, endpoint, revision, only, folder)
    num_bytes = sum(file.size for file in files)
    tell(f"{name}: {published.repo} at {commit}, {len(files)} files, {num_bytes / 2**20:,.1f} MiB")
    tell(f"licence: {terms or 'the card names none'}; the authors' page is {published.page}")
    with _hub_errors(published, endpoint, folder):
        for file in files:
            _fetch_one(published.repo, commit, file, folder, endpoint)
    found = {
        "name": name,
        "repo": published.repo,
        "revision": commit,
        "license": terms,
        "path": str(folder),
        "files": {file.name: file.sha256 or file.blob for file in files},
        "num_bytes": num_bytes,
    }
    shutil.rmtree(folder / LEFT_BY_HUB, ignore_errors=True)
    (folder / RECORD).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if published.archives:
        tell("some files are archives: unpack them where docs/benchmark_sets.md says")
    return found


@contextmanager
def _hub_errors(published: Published, endpoint: str, folder: Path) -> Iterator[None]:
    """What huggingface_hub raises, as a sentence with a way on."""
    from huggingface_hub import errors

    repo = published.repo
    http_error = errors.HTTPError  # type: ignore[attr-defined]  # of the library that this version uses
    try:
        yield
    except errors.GatedRepoError as error:
        raise DataError(
            f"{repo} asks for consent: give it at {endpoint}/datasets/{repo}, then `hf auth login`"
        ) from error
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError) as error:
        raise DataError(f"{endpoint} has no such dataset or revision: {repo} ({error})") from error
    except (http_error, OSError) as error:
        raise DataError(
            f"the hub {endpoint} cannot be reached ({type(error).__name__}: {error}). On a machine that "
            f"reaches one, `hf download {repo} --repo-type dataset --local-dir {folder}`; copy the folder "
            "here, and give it as options.path. What is there is not fetched again"
        ) from error


def _ask(
    published: Published, endpoint: str, revision: str, only: Sequence[str], folder: Path
) -> tuple[str, str | None, list[HubFile]]:
    """(commit, licence, files) of a revision."""
    from huggingface_hub import HfApi

    with _hub_errors(published, endpoint, folder):
        info = HfApi(endpoint=endpoint).dataset_info(published.repo, revision=revision, files_metadata=True)
    patterns = tuple(only) or published.files
    files = [
        HubFile(each.rfilename, each.size or 0, each.lfs.sha256 if each.lfs else None, each.blob_id)
        for each in info.siblings or ()
        if any(fnmatch.fnmatch(each.rfilename, pattern) for pattern in patterns)
    ]
    if not files:
        raise ConfigError(f"{published.repo} has no files {', '.join(patterns)} at {revision}")
    terms = getattr(info.card_data, "license", None) if info.card_data else None
    return str(info.sha), ", ".join(terms) if isinstance(terms, list) else terms, files


def _fetch_one(repo: str, commit: str, file: HubFile, folder: Path, endpoint: str) -> None:
    """One file, compared with its checksum; one that is there and right is not asked for."""
    from huggingface_hub import hf_hub_download

    path = folder / file.name
    if path.is_file():
        if file.fits(path):
            return
        path.unlink()  # the hub's library would take it for what it has fetched
    hf_hub_download(
        repo, file.name, repo_type="dataset", revision=commit, local_dir=folder, endpoint=endpoint
    )
    if not file.fits(path):
        path.unlink()
        raise DataError(
            f"{path} is not what the hub names (another checksum), and was deleted; give the command again"
        )
