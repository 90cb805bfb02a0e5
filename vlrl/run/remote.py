"""Checkpoints at a URL: copied there when they are whole here, and fetched by a run that has none of its own.

URL/RUN_NAME/step_000100/…             the files of a checkpoint
URL/RUN_NAME/step_000100/files.json    its manifest, written last: without it nothing counts
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from vlrl.config import Config
from vlrl.errors import ResourceError
from vlrl.run.checkpoint import STATE_FILE, TellFn, checkpoints, written_atomically
from vlrl.run.manifest import MANIFEST_FILE, add_digests, damage, missing_files
from vlrl.storage.remote import RemoteFolder
from vlrl.storage.stopping import StopFn, Stopped
from vlrl.tracking.selection import checkpoint_name

OPTION = "checkpoint.upload_to"


class RemoteCheckpoints:
    """The checkpoints of one run at a URL.

    Attributes:
        url: the run's folder there.
    """

    def __init__(self, url: str, run_dir: Path, keep: int, keep_best: bool) -> None:
        """Ask the storage nothing yet.

        Args:
            url: of the option; the run's name is added.
            run_dir: the run's folder here.
            keep: how many there are to be there.
            keep_best: and beside them the best one, as the newest one knows it.

        Raises:
            ConfigError: if nothing here can open such a URL.
        """
        self.url = f"{url.rstrip('/')}/{run_dir.name}"
        self._remote, self._run_dir, self._keep = RemoteFolder(self.url, OPTION), run_dir, keep
        self._keep_best = keep_best

    @classmethod
    def of(cls, config: Config) -> RemoteCheckpoints | None:
        """Those of a run; None without checkpoint.upload_to."""
        url = config.checkpoint.upload_to
        return (
            None if url is None else cls(url, config.run_dir, config.checkpoint.keep, config.eval.keep_best)
        )

    def require_writable(self) -> None:
        """Raise ResourceError if the storage cannot be written."""
        self._remote.require_writable()

    def upload(self, folder: Path, stopped: StopFn) -> None:
        """Copy a checkpoint that has its digests, unless it is there already, or a newer one is whole here.

        The best one is copied in any case.

        Raises:
            Stopped: if it is to be given up.
            ResourceError: if it fails; what is there then is not a checkpoint.
        """
        best = self._best_by(folder)
        if folder.name not in (checkpoints(self._run_dir)[-1].name, best) or self.has(folder):
            return
        manifest = (folder / MANIFEST_FILE).read_bytes()
        self._remote.remove(f"{folder.name}/{MANIFEST_FILE}")  # of the same step, before it was done again
        for name in json.loads(manifest):
            if stopped():
                raise Stopped
            self._remote.upload(folder / name, f"{folder.name}/{name}", stopped)
        self._remote.write(f"{folder.name}/{MANIFEST_FILE}", manifest)
        self._prune(folder.name, best)

    def has(self, folder: Path) -> bool:
        """Whether a checkpoint is there as it is here."""
        return self._remote.read(f"{folder.name}/{MANIFEST_FILE}") == (folder / MANIFEST_FILE).read_bytes()

    def steps(self) -> list[str]:
        """The folders of the checkpoints there that are whole by their manifest, the newest first."""
        found = {
            name.partition("/")[0] for name in self._remote.files() if name.endswith(f"/{MANIFEST_FILE}")
        }
        return sorted(found, reverse=True)

    def fetch_newer(self, tell: TellFn) -> Path | None:
        """Copy the newest checkpoint here if it is of a later step than any that is whole here; its folder.

        The best one of that time is copied too, if it is kept.

        Raises:
            ResourceError: if the storage cannot be read, or the disk here is full.
        """
        here = [folder.name for folder in checkpoints(self._run_dir) if not missing_files(folder)]
        for name in self.steps():
            if here and name <= max(here):
                break
            if (final := self._copy(name, tell)) is None:
                continue
            best = self._best_by(final)
            if best is not None and not (final.parent / best).is_dir() and best in self.steps():
                self._copy(best, tell)
            return final
        return None

    def _copy(self, name: str, tell: TellFn) -> Path | None:
        """Its folder here; None if it is damaged."""
        final = self._run_dir / "checkpoints" / name
        try:
            with written_atomically(final) as aside:
                self._fetch(name, aside)
        except _Damaged as error:
            tell("checkpoint_damaged", f"damaged checkpoint {self.url}/{name}: {error}; going back")
            return None
        tell("checkpoint_fetched", f"{self.url}/{name} was copied to {final}")
        return final

    def _best_by(self, folder: Path) -> str | None:
        """The folder's name of the best checkpoint as one of this run knows it; None if none is kept."""
        state = json.loads((folder / STATE_FILE).read_text(encoding="utf-8")) if self._keep_best else {}
        step = (state.get("selection") or {}).get("best_step")
        return None if step is None else checkpoint_name(step)

    def _fetch(self, name: str, aside: Path) -> None:
        manifest = self._remote.read(f"{name}/{MANIFEST_FILE}") or b"{}"
        (aside / MANIFEST_FILE).write_bytes(manifest)
        try:
            names = list(json.loads(manifest))
        except ValueError as error:
            raise _Damaged(f"{MANIFEST_FILE} is damaged ({error})") from error
        there = self._remote.files()
        for each in names:
            if f"{name}/{each}" not in there:
                raise _Damaged(f"{each} is missing")
            self._remote.download(f"{name}/{each}", aside / each)
        if wrong := damage(aside):
            raise _Damaged(wrong)

    def _prune(self, newest: str, best: str | None) -> None:
        """Remove all but the best and the last `keep`, and later ones: the run has gone back behind them."""
        kept = [*[name for name in self.steps() if name <= newest][: self._keep], best]
        of_others = [
            n for n in self._remote.files() if n.startswith("step_") and n.partition("/")[0] not in kept
        ]
        for name in _manifests_first(of_others):
            self._remote.remove(name)


def upload_missing(config: Config, tell: TellFn) -> None:
    """Upload the last checkpoint of a finished run, if it is not there yet.

    Raises:
        ResourceError: if it fails.
    """
    remote, found = RemoteCheckpoints.of(config), checkpoints(config.run_dir)
    if remote is None or not found:
        return
    add_digests(found[-1])
    if not remote.has(found[-1]):
        remote.upload(found[-1], lambda: False)
        tell("checkpoint_uploaded", f"{found[-1]} was copied to {remote.url}/{found[-1].name}")


def require_uploaded(remote: RemoteCheckpoints, run_dir: Path) -> None:
    """Raise ResourceError, with a remedy, if a run's last checkpoint is not at its URL."""
    found = checkpoints(run_dir)
    try:
        is_there = not found or remote.has(found[-1])
    except ResourceError:
        is_there = False
    if not is_there:
        raise ResourceError(
            f"{found[-1]} was not uploaded to {remote.url} (RUN/events.jsonl says why); the run's files are "
            f"whole in {run_dir}: once the cause is fixed, the same command with --resume uploads it"
        )


class _Damaged(Exception):
    """What is wrong with a checkpoint at a URL."""


def _manifests_first(names: Iterable[str]) -> list[str]:
    """What makes a checkpoint count as whole goes first."""
    return sorted(names, key=lambda name: (not name.endswith(f"/{MANIFEST_FILE}"), name))
