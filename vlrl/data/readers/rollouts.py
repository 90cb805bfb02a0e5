"""Scored rollouts as rows: each prompt's best completions as targets, or its best and worst as a pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from vlrl.data.readers.files import expand
from vlrl.data.readers.record import Record
from vlrl.errors import DataError
from vlrl.rounding import all_equal
from vlrl.tracking.rollouts.paths import rollout_files, run_dir_of
from vlrl.tracking.rollouts.read import read_rollouts

COMPLETE = "ok"
"""The outcome of a completion that ended by itself; one that was cut is no example."""


class RolloutReader:
    """JSONL files of `vlrl rollout` and of runs, one or several; read whole.

    Rejection sampling (RAFT, arXiv 2304.06767, §3): of each prompt the best completions by reward, if they
    are good enough. All completions of a sample are compared, from whichever file or step they are.
    """

    def __init__(
        self,
        path: str,
        min_reward: float | None = None,
        best_of: int | None = 1,
        give: Literal["targets", "pairs"] = "targets",
    ) -> None:
        """Read and filter.

        Args:
            path: of the files; * and {a,b} name several. A run's folder stands for its training's.
            min_reward: least reward of a target, or of a pair's chosen one; None takes any.
            best_of: targets of each prompt, the best; None takes all that have min_reward.
            give: targets, for supervised training, or pairs of the best and the worst of each prompt whose
                rewards differ.

        Raises:
            DataError: if there is no rollout, or none that is good enough, or one of several turns.
        """
        if give not in ("targets", "pairs"):
            raise DataError(f"rollouts: give={give!r} is not one of targets, pairs")
        groups: dict[str, list[tuple[dict[str, Any], Path]]] = {}
        folder = Path(path)
        for file in rollout_files(folder) if folder.is_dir() else expand(path):
            for record in read_rollouts(file):
                if record.get("reward") is not None and record.get("outcome") == COMPLETE:
                    groups.setdefault(record["sample_id"], []).append((record, run_dir_of(file)))
        self._records = [
            record
            for of_sample in groups.values()
            for record in _chosen(of_sample, min_reward, best_of, give == "pairs")
        ]
        if not self._records:
            num_scored = sum(map(len, groups.values()))
            raise DataError(
                f"{path}: of {num_scored} complete and scored rollouts none is kept by "
                f"min_reward={min_reward} and give={give}; lower min_reward, or generate more"
            )

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._records)

    def __getitem__(self, index: int) -> Record:
        """Row `index`."""
        found = self._records[index]
        return Record(dict(found.fields), found.place, found.root)


Scored = tuple[Mapping[str, Any], Path]
"""A record, and the folder that its media are under."""


def _chosen(
    scored: Sequence[Scored], min_reward: float | None, best_of: int | None, as_pairs: bool
) -> list[Record]:
    """The rows of one sample; completions that say the same count once, ties go to the earlier."""
    distinct = {record["completion"]: (record, root) for record, root in reversed(scored)}
    ranked = sorted(reversed(distinct.values()), key=lambda each: -each[0]["reward"])
    good = [each for each in ranked if min_reward is None or each[0]["reward"] >= min_reward]
    if not as_pairs:
        return [_row(each, f"#{rank}" if rank else "") for rank, each in enumerate(good[:best_of])]
    if not good or all_equal([record["reward"] for record, _ in ranked]):
        return []
    return [_row(good[0], rejected=ranked[-1][0]["completion"])]


def _row(scored: Scored, suffix: str = "", rejected: str | None = None) -> Record:
    record, root = scored
    name = f"{record['sample_id']}{suffix}"
    if record.get("env") or len(record["turns"]) != 1:
        raise DataError(f"rollout of sample {name!r}: it has several turns, and only single answers are rows")
    media = [record["media"][index] for index in record["turns"][0]["media"]]
    if any(medium["kind"] != "image" for medium in media):
        raise DataError(f"rollout of sample {name!r}: it shows a video, of which rollouts keep no file")
    said = {"role": "assistant", "content": record["completion"]}
    fields = {
        "id": name,
        "messages": [*record["messages"], said],
        "images": [medium["path"] for medium in media],
        "answer": record["answer"],
        "metadata": {**record["metadata"], "reward": record["reward"]},
    }
    if rejected is not None:
        fields["rejected"] = rejected
    return Record(fields, name, root)
