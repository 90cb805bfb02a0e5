"""Episodes of every family that part, branch and share images, and its tiny model to compute them with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from builders import family_config, make_generation, observe, random_image
from plain_model import model_of

from vlrl.algorithm.credit import group_with_advantages
from vlrl.batch import MicroBatch
from vlrl.model.kernels import interpolation, videos
from vlrl.model.omni.thinker import core_of
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.processors.auto import open_processor
from vlrl.rollout.session import Session
from vlrl.types import Group, Ledger, Score


@dataclass(frozen=True)
class Turn:
    """An episode that goes on from an earlier one: what it sees next, and what it says."""

    after: int
    image: int | None
    generated: list[int]


FORKED: list[tuple[str, list[Turn]]] = [
    # Equal twice over, then apart: after one generated token, before an image, at another image.
    ("image", [Turn(0, 0, [40, 41, 42]), Turn(0, 0, [40, 41, 43]), Turn(1, 1, [41]), Turn(1, 2, [41, 42])]),
    ("image", [Turn(0, None, [42, 42]), Turn(0, None, [42, 42])]),
    ("video", [Turn(0, 1, [43, 40]), Turn(1, None, [41, 40, 42])]),
]


@dataclass
class Family:
    """One family's processor and model."""

    name: str
    ours: Any
    model: Any

    @classmethod
    def open(cls, name: str, folder: Path) -> Family:
        """The family whose tiny model lies in a folder, in float32 on the CPU."""
        model = model_of(folder)
        interpolation.install(model)  # transformers' own take no videos as images
        videos.install(model)
        video = {"min_pixels": 32 * 32, "max_pixels": 96 * 96}
        config = family_config(
            folder, processor={"min_pixels": 4096, "max_pixels": 160 * 160, "video": video}
        )
        return cls(name, open_processor(config), model.eval())

    def packed(self, groups: Sequence[Group], **options: Any) -> list[list[MicroBatch]]:
        """Micro-batches of each rank (one, without `num_ranks`); no token is left out for its advantage."""
        own = {"num_ranks": 1, "max_tokens": 4096, "aggregation": "token", "max_completion_tokens": 8}
        return pack(list(groups), self.ours.pixels, PackOptions(**own | options, keep_zero_advantage=True))

    def groups(self, specs: Sequence[tuple[str, list[Turn]]]) -> list[Group]:
        """A group of episodes for each; all begin with the same system prompt."""
        return [
            self._group(number, *spec, rng=np.random.default_rng(number)) for number, spec in enumerate(specs)
        ]

    def _group(self, number: int, begins: str, turns: list[Turn], rng: np.random.Generator) -> Group:
        content: list[dict[str, Any]] = [{"type": "text", "text": f"Task {number}."}]
        if begins == "video" and self.ours.takes_video:
            frames = [random_image(64, 96, seed=i) for i in range(4)]
            content.insert(0, {"type": "video", "video": frames, "fps": 2.0})
        elif begins:
            content.insert(0, {"type": "image", "image": random_image(64, 96, seed=1)})
        messages = [{"role": "system", "content": "Do it."}, {"role": "user", "content": content}]
        sample = self.ours.sample({"id": f"g{number}", "messages": messages})
        sessions = [Session(sample, 0)]
        self.ours.act(sessions[0], make_generation([40, 41]))
        for index, turn in enumerate(turns, start=1):
            session = sessions[turn.after % len(sessions)].branch(index)
            images = [] if turn.image is None else [random_image(64, 64, seed=turn.image)]
            observe(self.ours, session, "next", images)
            self.ours.act(session, make_generation(turn.generated))
            sessions.append(session)
        trajectories = [session.trajectory("", "ok", 0.0) for session in sessions]
        for trajectory in trajectories:
            trajectory.score = Score(0.0, {})
        group = group_with_advantages(trajectories, rng.normal(size=len(trajectories)).tolist())
        for credit in group.credits:  # ledgers are told apart by their advantages
            for number, advantages in enumerate(credit.advantages):
                advantages *= 1 + number / 8
        return group

    def plain_logprobs(self, ledger: Ledger) -> torch.Tensor:
        """transformers' own forward of one ledger, of every token but the first."""
        core = core_of(self.model)
        ids = torch.tensor(ledger.token_ids)[None]
        if self.ours.takes_video:  # a video's patches or tiles go in as an image's
            video_token_id = getattr(core.config, "video_token_id", core.config.image_token_id)
            ids = ids.masked_fill(ids == video_token_id, core.config.image_token_id)
        positions = torch.tensor(ledger.position_ids)[:, None]
        options: dict[str, Any] = {}
        if ledger.media:
            pixels = {name: torch.tensor(v) for name, v in self.ours.pixels(ledger.media).items()}
            options["mm_encoder_outputs"] = {"image": core.get_image_features(**pixels, return_dict=True)}
        output = core(
            input_ids=ids,
            position_ids=positions if hasattr(core, "get_rope_index") else positions[0],
            attention_mask=torch.ones_like(ids),
            use_cache=False,
            **options,
        )
        logits = self.model.lm_head(output.last_hidden_state)[0, :-1].float()
        if cap := getattr(core.config.get_text_config(), "final_logit_softcapping", None):
            logits = cap * torch.tanh(logits / cap)
        logits[:, list(self.ours.banned_token_ids)] = -torch.inf
        return torch.log_softmax(logits, -1).gather(1, torch.tensor(ledger.token_ids)[1:, None])[:, 0]

    def gradients(self, loss: torch.Tensor) -> dict[str, torch.Tensor]:
        self.model.zero_grad()
        loss.backward()
        found = {n: p.grad.clone() for n, p in self.model.named_parameters() if p.grad is not None}
        self.model.zero_grad()
        return found

    def checkpointed(self, on: bool) -> None:
        if on:
            options = {"use_reentrant": False}
            self.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=options)
        else:
            self.model.gradient_checkpointing_disable()
        self.model.train(on)
