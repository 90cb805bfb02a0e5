"""A step's rollouts as an Arrow table, a row a trajectory; tokens are lists in columns, never text of JSON.

What has the shape that a data set or an environment chose (messages, answer, metadata, env, info of a turn)
is a string of JSON, so that all files of a run have one schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vlrl.batch import TokenValues
from vlrl.ledger import Credit, Ledger
from vlrl.protocols import Processor
from vlrl.tracking.rollouts.records import SURROGATES, played_record, sample_record
from vlrl.types import Group, Sample

_NUMBERS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.float64())]))
_TEXTS = pa.list_(pa.struct([("name", pa.string()), ("value", pa.string())]))
_INDICES = pa.list_(pa.int32())

TURN = pa.struct(
    [
        ("ledger", pa.int32()),
        ("context", _INDICES),
        ("action", _INDICES),
        ("text", pa.string()),
        ("finished", pa.bool_()),
        ("reward", pa.float64()),
        ("invalid", pa.bool_()),
        ("state", pa.string()),
        ("seen", pa.string()),
        ("form", pa.string()),
        ("canvases", pa.string()),
        ("info", pa.string()),
        ("media", _INDICES),
        ("advantage", pa.float64()),
    ]
)
MEDIUM = pa.struct(
    [
        ("sha256", pa.string()),
        ("path", pa.string()),
        ("width", pa.int32()),
        ("height", pa.int32()),
        ("kind", pa.string()),
        ("num_frames", pa.int32()),
        ("original_size", _INDICES),
        ("coordinate_frame", pa.string()),
        ("timestamps_s", pa.list_(pa.float64())),
        ("fps", pa.float64()),
    ]
)
LEDGER = {
    "token_ids": pa.int32(),
    "token_texts": pa.string(),
    "loss_mask": pa.bool_(),
    "sampler_logprobs": pa.float32(),
    "weight_versions": pa.int32(),
    "advantages": pa.float32(),
    "trainer_logprobs": pa.float32(),
    "entropies": pa.float32(),
}
"""Columns of a ledger, each a list with an entry a token. Null: weight_versions and sampler_logprobs where
the policy did not generate the token; advantages, trainer_logprobs and entropies where it is not trained."""

SCHEMA = pa.schema(
    [
        ("step", pa.int32()),
        ("position", pa.int64()),
        ("group", pa.int32()),
        ("group_index", pa.int32()),
        ("sample_id", pa.string()),
        ("source", pa.string()),
        ("agent", pa.string()),
        ("refusal", pa.string()),
        ("replayed", pa.bool_()),
        ("outcome", pa.string()),
        ("failure", pa.string()),
        ("reward", pa.float64()),
        ("parts", _NUMBERS),
        ("explanations", _TEXTS),
        ("advantage", pa.float64()),
        ("completion", pa.string()),
        ("num_turns", pa.int32()),
        ("num_generated_tokens", pa.int32()),
        ("weight_version", pa.int64()),
        ("duration_s", pa.float64()),
        ("episode_return", pa.float64()),
        ("info", _NUMBERS),
        ("trunk", pa.int32()),
        ("num_shared_turns", pa.int32()),
        ("messages", pa.string()),
        ("answer", pa.string()),
        ("metadata", pa.string()),
        ("env", pa.string()),
        ("turns", pa.list_(TURN)),
        ("end", pa.struct([("seen", pa.string()), ("media", _INDICES)])),
        ("media", pa.list_(MEDIUM)),
        ("ledgers", pa.list_(pa.struct([(name, pa.list_(kind)) for name, kind in LEDGER.items()]))),
    ]
)
"""Of every file; docs/rollouts.md explains the columns."""


@dataclass(frozen=True, slots=True)
class RolloutPlace:
    """Where a group was generated and trained.

    Attributes:
        step: that trained it, or for which it was refused; updates made before it.
        position: of its ticket in the run's sequence of samples; None of a replayed one from a checkpoint.
        number: of the group among those that the step trained; those refused are numbered after them.
        is_replayed: whether an earlier step generated and trained it.
    """

    step: int
    position: int | None
    number: int
    is_replayed: bool = False


def rollout_table(
    groups: Sequence[Group],
    places: Sequence[RolloutPlace],
    processor: Processor,
    values: TokenValues | None = None,
) -> pa.Table:
    """The trajectories of groups, in order.

    Args:
        groups: scored, with credit where they were trained.
        places: of each group.
        processor: spells the tokens.
        values: what the trainer computed of tokens; of other groups' too.
    """
    rows, ledgers, credits, keys = list[dict[str, Any]](), list[Ledger](), list[Any](), list[Any]()
    counts, asked = [], dict[int, dict[str, Any]]()
    for group, place in zip(groups, places, strict=True):
        for index, trajectory in enumerate(group.trajectories):
            sample = trajectory.sample  # of an environment each episode may have its own
            if id(sample) not in asked:
                asked[id(sample)] = _asked(sample)
            rows.append(asked[id(sample)] | _played(group, index, place))
            counts.append(len(trajectory.ledgers))
            credit = group.credits[index] if index < len(group.credits) else None
            for number, ledger in enumerate(trajectory.ledgers):
                ledgers.append(ledger)
                credits.append((credit, number))
                keys.append((place.number, trajectory.group_index, number))
    tokens = _tokens(ledgers, credits, processor)
    tokens |= _trainer_columns(values, keys, ledgers)
    flat = pa.StructArray.from_arrays(list(tokens.values()), list(tokens))
    columns = {field.name: field for field in SCHEMA if field.name != "ledgers"}
    arrays = [pa.array([row[name] for row in rows], type=field.type) for name, field in columns.items()]
    nested = pa.ListArray.from_arrays(_offsets(counts), flat)
    return pa.Table.from_arrays([*arrays, nested], schema=SCHEMA)


def _asked(sample: Sample) -> dict[str, Any]:
    """The columns of a sample."""
    record = sample_record(sample)
    return {
        **{name: _json(value) for name, value in record.items()},
        "sample_id": _utf8(sample.id),
        "source": _utf8(sample.source),
        "agent": _utf8(sample.agent),
    }


def _played(group: Group, index: int, place: RolloutPlace) -> dict[str, Any]:
    """All columns of a trajectory but its sample's and its ledgers."""
    record = played_record(group, index)
    return {
        **record,
        "parts": _named(record["parts"]),
        "info": _named(record["info"]),
        "explanations": _named({name: _utf8(text) for name, text in record["explanations"].items()}),
        "turns": [
            turn | {"canvases": _json(turn["canvases"]), "info": _json(turn["info"])}
            for turn in map(_clean, record["turns"])
        ],
        "completion": _utf8(record["completion"]),
        "failure": _utf8(record["failure"]),
        "step": place.step,
        "position": place.position,
        "group": place.number,
        "replayed": place.is_replayed,
        "refusal": group.refusal or None,
        "num_turns": len(record["turns"]),
        "num_generated_tokens": group.trajectories[index].num_action_tokens,
    }


def _clean(turn: Mapping[str, Any]) -> dict[str, Any]:
    return {**turn, "text": _utf8(turn["text"]), "state": _utf8(turn["state"])}


def _tokens(
    ledgers: Sequence[Ledger], credits: Sequence[tuple[Credit | None, int]], processor: Processor
) -> dict[str, pa.Array]:
    """What the rollout knows of each token, a list a ledger."""
    offsets = _offsets([len(ledger.token_ids) for ledger in ledgers])
    ids = _joined([ledger.token_ids for ledger in ledgers], np.int64)
    mask = _joined([ledger.loss_mask for ledger in ledgers], np.bool_)
    known, which = np.unique(ids, return_inverse=True)
    texts = pa.array([_utf8(text) for text in processor.token_texts(known)], pa.string())
    advantages, trained = [], []
    for ledger, (credit, number) in zip(ledgers, credits, strict=True):
        size, counts = len(ledger.token_ids), credit is not None and credit.counts
        advantages.append(credit.advantages[number] if credit and counts else np.zeros(size))
        trained.append(credit.trained[number] if credit and counts else np.zeros(size, bool))
    columns = {
        "token_ids": pa.array(ids, pa.int32()),
        "token_texts": texts.take(pa.array(which.reshape(-1))),
        "loss_mask": pa.array(mask),
        "sampler_logprobs": _where(
            mask, _joined([ledger.sampler_logprobs for ledger in ledgers], np.float32)
        ),
        "weight_versions": pa.array(
            _joined([ledger.versions for ledger in ledgers], np.int64), pa.int32(), mask=~mask
        ),
        "advantages": _where(_joined(trained, np.bool_), _joined(advantages, np.float32)),
    }
    return {name: pa.ListArray.from_arrays(offsets, column) for name, column in columns.items()}


def _trainer_columns(
    values: TokenValues | None, keys: Sequence[tuple[int, int, int]], ledgers: Sequence[Ledger]
) -> dict[str, pa.Array]:
    """What the trainer computed of each token, a list a ledger; null where it computed nothing."""
    offsets = _offsets([len(ledger.token_ids) for ledger in ledgers])
    starts = {key: int(start) for key, start in zip(keys, offsets.to_numpy(), strict=False)}
    found = {
        name: np.full(offsets[-1].as_py(), np.nan, np.float32) for name in ("trainer_logprobs", "entropies")
    }
    if values is not None and len(values.origins):
        of_ledgers, which = np.unique(values.origins[:, :3], axis=0, return_inverse=True)
        begin = np.array([starts.get(tuple(key), -1) for key in of_ledgers.tolist()], np.int64)
        begin = begin[which.reshape(-1)]
        here = begin >= 0
        places = begin[here] + values.origins[here, 3]
        found["trainer_logprobs"][places] = values.trainer_logprobs[here]
        found["entropies"][places] = values.entropies[here]
    return {
        name: pa.ListArray.from_arrays(offsets, _where(~np.isnan(column), column))
        for name, column in found.items()
    }


def _where(known: npt.NDArray[np.bool_], values: npt.NDArray[np.float32]) -> pa.Array:
    """The values, null where they are not known."""
    return pa.array(values, pa.float32(), mask=~known)


def _joined(arrays: Sequence[npt.NDArray[Any]], dtype: type[np.generic]) -> npt.NDArray[Any]:
    joined: npt.NDArray[Any] = np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype, copy=False)
    return joined


def _offsets(counts: Iterable[int]) -> pa.Array:
    """Where lists of these lengths begin, and the end."""
    return pa.array(np.concatenate([[0], np.cumsum(list(counts), dtype=np.int64)]), pa.int32())


def _named(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _json(value: Any) -> str | None:
    return None if value is None else _utf8(json.dumps(value, ensure_ascii=False, default=str))


def _utf8(text: str) -> str:
    """The text with half surrogate pairs written out: Arrow's strings are UTF-8."""
    return text if text.isascii() else text.encode("utf-8", SURROGATES).decode("utf-8")
