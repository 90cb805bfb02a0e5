"""Small records for tests: samples, trajectories and groups, with or without a real processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from vlrl.algorithm.credit import group_with_advantages
from vlrl.config import Config, parse_config
from vlrl.config.rollout import ContextConfig
from vlrl.data import SampleStream
from vlrl.environment.host.host import EnvHost
from vlrl.processors.messages import text_of
from vlrl.protocols import Policy
from vlrl.rollout.context import RolloutContext, endpoint_of
from vlrl.rollout.session import MediaMessage, Session
from vlrl.rollout.visible import visible
from vlrl.run.players.player import Player
from vlrl.run.players.rollouts import InProcess
from vlrl.scoring.compose import ComposedReward
from vlrl.types import (
    FloatArray,
    Generation,
    Group,
    IntArray,
    Media,
    Prompt,
    Row,
    Sample,
    Sampling,
    Score,
    Trajectory,
    VersionSpan,
)

SAMPLING = Sampling(temperature=1.0, max_tokens=8, seed=0)


def make_config(model: str | Path = "unused", /, **sections: Any) -> Config:
    """A config for the digit task; keyword sections are merged over it."""
    tree: dict[str, Any] = {
        "model": {"path": str(model)},
        "data": {"train": {"name": "digit_sum"}},
        "rewards": [{"name": "answer_exact"}],
        "rollout": {"prompts_per_step": 4, "group_size": 4, "max_tokens": 12},
        "generator": {"max_model_len": 512},
    }
    for name, section in sections.items():
        merge = isinstance(section, dict) and isinstance(tree.get(name), dict)
        tree[name] = {**tree[name], **section} if merge else section
    return parse_config(tree)


def text_prompt(token_ids: Sequence[int], position: int = 0) -> Prompt:
    """A prompt without media, positions counted from `position`."""
    ids = np.asarray(token_ids, dtype=np.int64)
    positions = np.tile(np.arange(position, position + ids.size), (3, 1))
    return Prompt(ids, ids, positions, position + ids.size)


def make_sample(token_ids: Sequence[int] = (1, 2, 3), **fields: Any) -> Sample:
    """A text-only sample with given prompt tokens."""
    defaults: dict[str, Any] = {"id": "s", "messages": (), "media": (), "prompt": text_prompt(token_ids)}
    return Sample(**{**defaults, **fields})


def make_generation(
    token_ids: Sequence[int],
    logprobs: Sequence[float] | None = None,
    *,
    version: int = 0,
    finished: bool = True,
) -> Generation:
    """What an engine would have generated."""
    values = [-1.0] * len(token_ids) if logprobs is None else logprobs
    return Generation(
        np.asarray(token_ids, dtype=np.int64),
        np.asarray(values, dtype=np.float32),
        (VersionSpan(version, 0, len(token_ids)),),
        finished,
    )


def make_trajectory(
    sample: Sample,
    completion_ids: Sequence[int],
    *,
    index: int = 0,
    reward: float | None = 0.0,
    logprobs: Sequence[float] | None = None,
    completion: str = "",
) -> Trajectory:
    """A scored single-turn trajectory; reward None is one that could not be scored."""
    session = Session(sample, index)
    session.append_action(make_generation(completion_ids, logprobs))
    trajectory = session.trajectory(completion, "ok", 0.0)
    trajectory.score = None if reward is None else Score(reward, {})
    return trajectory


def make_group(
    lengths: Sequence[int],
    *,
    sample: Sample | None = None,
    advantages: Sequence[float] | None = None,
    failed: bool = False,
    seed: int = 0,
    vocab: int = 200,
) -> Group:
    """A group of random completions of these lengths; with failed, its last member has no score."""
    sample = sample or make_sample()
    rng = np.random.default_rng(seed)
    trajectories = [
        make_trajectory(
            sample,
            rng.integers(0, vocab, length).tolist(),
            index=i,
            logprobs=rng.normal(-3.0, 0.3, length).tolist(),
            reward=None if failed and i == len(lengths) - 1 else float(i),
        )
        for i, length in enumerate(lengths)
    ]
    values = np.arange(len(lengths)) - 1.0 if advantages is None else advantages
    return group_with_advantages(trajectories, [float(value) for value in values])


def advantages_of(group: Group) -> list[float]:
    """The advantage of each trajectory whose tokens all have the same one."""
    return [float(credit.advantages[-1][-1]) for credit in group.credits]


def no_pixels(media: Sequence[Media]) -> dict[str, FloatArray]:
    """A pixel function for samples without media."""
    assert not media
    return {}


def random_image(height: int, width: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """A random [height, width, 3] uint8 image."""
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def row(text: str = "What is this?", images: Sequence[Any] = (), *, row_id: str = "r", **fields: Any) -> Row:
    """A dataset row with images before the text."""
    parts = [{"type": "image", "image": p} for p in images] + [{"type": "text", "text": text}]
    return {"id": row_id, "messages": [{"role": "user", "content": parts}], **fields}


class ScriptedPolicy:
    """A Policy that answers from a function and remembers what it was asked."""

    def __init__(self, answer: Callable[[Session, Sampling], Sequence[int]]) -> None:
        self.answer = answer
        self.asked: list[tuple[Session, Sampling]] = []

    async def generate(self, session: Session, sampling: Sampling) -> Generation:
        """Answer, and note the request."""
        self.asked.append((session, sampling))
        return make_generation(self.answer(session, sampling))


class TextProcessor:
    """What a text-only rollout asks of a processor: tokens are code points."""

    def decode(self, token_ids: IntArray) -> str:
        """Code points to text."""
        return "".join(chr(i) for i in token_ids.tolist())

    def act(self, session: Session, generation: Generation) -> str:
        """Append and decode."""
        text = self.decode(generation.token_ids)
        session.append_action(generation, text)
        return text

    def message(self, role: str, parts: Sequence[Mapping[str, Any]], where: str) -> MediaMessage:
        """Text parts alone."""
        assert all(part["type"] == "text" for part in parts), where
        return MediaMessage({"role": role, "content": list(parts)})

    def show(self, session: Session, seen: Sequence[MediaMessage]) -> None:
        """Show as the real ones do: what is new, or all of it in a fork."""
        spelled, full = self._spell(session.shown), self._spell(seen)
        if session.last_turn is not None and session.last_turn.action[1] == len(session.token_ids):
            spelled += session.last_turn.text
        if full.startswith(spelled):
            session.append_observation(self._prompt(full[len(spelled) :], session.next_position), (), seen)
        else:
            session.fork(self._prompt(full, 0), (), seen)

    def encode(
        self, messages: Sequence[Mapping[str, Any]], media: Sequence[Media], tools: Any = ()
    ) -> Prompt:
        """A conversation's code points."""
        return self._prompt(self._spell([MediaMessage(message) for message in messages]), 0)

    def _prompt(self, text: str, start: int) -> Prompt:
        return text_prompt([ord(character) for character in text], start)

    def _spell(self, seen: Sequence[MediaMessage]) -> str:
        return "".join(f"[{said.message['role']}]{text_of(said.message)}" for said in seen) + "[assistant]"


def open_tiny(model: Path, **processor: Any) -> Any:
    """The tiny model's processor; images may be as small as one token."""
    from vlrl.processors.auto import open_processor

    limits = {"min_pixels": 28 * 28, "max_pixels": 168 * 168, **processor}
    return open_processor(make_config(model, processor=limits))


def family_config(folder: Path, **sections: Any) -> Config:
    """A config for a tiny family: images of at most 25 merged patches where the family has a say."""
    processor = {"min_pixels": 32 * 32 * 4, "max_pixels": 160 * 160}
    return make_config(folder, **{"processor": processor, **sections})


def observe(processor: Any, session: Session, text: str, images: Sequence[Any] = (), **policy: Any) -> None:
    """Tell the session what an environment says, and show it under a context policy."""
    parts = [{"type": "image", "image": image} for image in images] + [{"type": "text", "text": text}]
    session.append_message(processor.message("user", parts, session.sample.id), text)
    processor.show(session, visible(session.conversation, ContextConfig(**policy)))


def make_context(policy: Policy, processor: Any, config: Config) -> RolloutContext:
    """What episodes are played with; nothing of the host is started before there is an environment."""
    host = EnvHost(config.env, max_open=config.episodes.max_episodes)
    return RolloutContext(policy, processor, host, config, endpoint_of(config))


def in_process(context: RolloutContext, reward: ComposedReward) -> InProcess:
    """Where held-out samples are answered by the context's policy; there is nothing to train on."""
    return InProcess(Player(context.config, cast(SampleStream, None), context, reward, masks=[]))
