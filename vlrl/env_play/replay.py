"""Recorded episodes played again: the same seed and actions must earn and show the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vlrl.coordinates import Canvas
from vlrl.env_play.demonstrations import FILE
from vlrl.environment.observe import digest_of
from vlrl.environment.plain import PlainEnv
from vlrl.errors import DataError, VlrlError
from vlrl.foreign.failure import failure_of
from vlrl.rollout.endpoint.agent import AGENT
from vlrl.tracking.rollouts.paths import report_files, train_files
from vlrl.tracking.rollouts.read import read_rollouts

Record = Mapping[str, Any]
SAME, UNKNOWN = "same", "not recorded"


@dataclass(slots=True)
class Replay:
    """The result of an episode.

    Attributes:
        id: the sample's, and which of its group: SAMPLE#INDEX.
        file: it stands in.
        env: name of the environment.
        seed: of the episode.
        num_turns: played again.
        rewards: "same", or where they first differ.
        pixels: "same", or where something else is first shown; "not recorded" in old files.
        problem: why it could not be played on; empty if it could.
        skipped: why it was not played at all; empty if it was.
    """

    id: str
    file: str
    env: str = ""
    seed: int = 0
    num_turns: int = 0
    rewards: str = SAME
    pixels: str = SAME
    problem: str = ""
    skipped: str = ""

    @property
    def is_same(self) -> bool:
        """True if nothing differs, as far as it was recorded."""
        return not self.problem and self.rewards == SAME and self.pixels in (SAME, UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Turn:
    text: str
    reward: float | None
    seen: str = ""
    canvases: Sequence[Canvas] = ()


@dataclass(frozen=True, slots=True)
class _Recorded:
    """An episode as it was; an end of "" is one that the environment did not see."""

    turns: Sequence[_Turn]
    end_seen: str = ""
    failed: bool = False
    missing: str = field(default="")


def replay_all(
    path: Path, episode: str | None = None, on_episode: Callable[[str], None] = lambda id: None
) -> dict[str, Any]:
    """Play a run's recorded episodes again, each in a new environment of this process.

    Args:
        path: a run's folder, a file of rollouts, or demonstrations that `vlrl env play` saved.
        episode: only those of this sample, or only this one: SAMPLE#INDEX.
        on_episode: called with the next one.

    Returns:
        ok, num_same, num_skipped and the episodes; JSON-ready. ok if some were played, and all alike.

    Raises:
        DataError: if there is no such file or episode.
        ConfigError: for an environment that cannot be made.
    """
    replays = []
    for file, record in _records(path):
        id = _id(record)
        if episode in (None, id, str(_sample_id(record))):
            on_episode(id)
            replays.append(replay_record(record, Replay(id, str(file))))
    if not replays:
        which = f"episode {episode!r}" if episode else "episodes"
        raise DataError(f"{path}: there are no {which}; give a run's folder, or a file of its rollouts")
    played = [replay for replay in replays if not replay.skipped]
    return {
        "ok": bool(played) and all(replay.is_same for replay in played),
        "num_episodes": len(replays),
        "num_same": sum(replay.is_same for replay in played),
        "num_skipped": len(replays) - len(played),
        "episodes": [asdict(replay) | {"is_same": replay.is_same} for replay in replays],
    }


def replay_record(record: Record, replay: Replay) -> Replay:
    """Play one record again and fill in the result."""
    spec = record.get("env")
    recorded = _recorded(record)
    if spec is None or spec["name"] == AGENT or recorded.missing:
        replay.skipped = recorded.missing or "no environment played it"
        return replay
    replay.env, replay.seed = spec["name"], spec["seed"]
    env = PlainEnv(spec["name"], spec.get("options") or {}, several=True)
    try:
        if env.agents:
            replay.skipped = "several agents played it, and a record has the actions of one"
        else:
            _play(env, spec, recorded, replay)
    except VlrlError as error:
        replay.problem = str(error)
    except Exception as error:  # a stranger's code
        replay.problem = f"turn {replay.num_turns + 1}: {failure_of(error).reason}"
    finally:
        env.close()
    return replay


def _play(env: PlainEnv, spec: Mapping[str, Any], recorded: _Recorded, replay: Replay) -> None:
    shown = digest_of(env.reset(spec.get("task") or {}, spec["seed"]))
    ended = False
    if not any(turn.seen for turn in recorded.turns):
        replay.pixels = UNKNOWN
    for number, turn in enumerate(recorded.turns, start=1):
        _compare_pixels(replay, turn.seen, shown, f"before turn {number}")
        if recorded.failed and number == len(recorded.turns):
            return  # the result of its last action is not known
        if ended:
            replay.problem = f"it ends after turn {number - 1}, and went on"
            return
        if env.has("seen"):
            env.call("seen", tuple(turn.canvases))
        result = env.step(turn.text)
        replay.num_turns = number
        reward, ended = float(result.reward), bool(result.terminated or result.truncated)
        if turn.reward is not None and reward != turn.reward and replay.rewards == SAME:
            replay.rewards = f"turn {number}: {turn.reward:g} then, {reward:g} now"
        shown = digest_of(result.observation)
    _compare_pixels(replay, recorded.end_seen, shown, "at the end")
    if recorded.end_seen and not ended:
        replay.problem = "it goes on, and had ended"


def _compare_pixels(replay: Replay, then: str, now: str, where: str) -> None:
    if then and now != then and replay.pixels == SAME:
        replay.pixels = f"{where} something else is shown"


def _records(path: Path) -> Iterator[tuple[Path, Record]]:
    """Every record of a file, or of a folder's rollouts and demonstrations."""
    files = [path]
    if path.is_dir():
        files = [*train_files(path).values(), *report_files(path), *sorted(path.glob(FILE))]
    for file in files:
        for record in read_rollouts(file):
            yield file, record


def _sample_id(record: Record) -> Any:
    return record.get("sample_id", record.get("id", ""))


def _id(record: Record) -> str:
    return f"{_sample_id(record)}#{record.get('group_index', 0)}"


def _recorded(record: Record) -> _Recorded:
    if "turns" not in record:
        return _recorded_row(record)
    turns = [
        _Turn(
            turn["text"],
            turn["reward"],
            turn.get("seen", ""),
            [
                Canvas(tuple(c["original_size"]), tuple(c["size"]), c["coordinate_frame"])
                for c in turn.get("canvases", ())
            ],
        )
        for turn in record["turns"]
    ]
    failed = record.get("outcome") not in ("ok", "truncated")
    return _Recorded(
        turns,
        record.get("end", {}).get("seen", ""),
        failed,
        "" if turns else "it failed before its first action",
    )


def _recorded_row(row: Record) -> _Recorded:
    """A demonstration: its actions are the assistant's messages, the last one its target."""
    if "target" not in row or "env" not in row:
        return _Recorded((), missing="neither a rollout nor a demonstration")
    texts = [m["content"][0]["text"] for m in row["messages"] if m["role"] == "assistant"] + [row["target"]]
    kept = row.get("metadata", {})
    seen = kept.get("seen") or [""] * (len(texts) + 1)
    rewards = kept.get("rewards") or [None] * len(texts)
    return _Recorded([_Turn(*each) for each in zip(texts, rewards, seen[:-1], strict=True)], seen[-1])
