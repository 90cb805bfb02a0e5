"""What a `TrainingClient` does: rows to episodes, episodes to gradients, weights to the engines."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from vlrl.algorithm.credit import assign_credit
from vlrl.batch import Batch
from vlrl.config import Config
from vlrl.data.rows import RowMaker, Rows
from vlrl.data.run_data import require_targets
from vlrl.environment.host.host import EnvHost
from vlrl.errors import ConfigError
from vlrl.foreign.runner import result_of
from vlrl.library.advantages import Advantage, by_episode, with_advantages
from vlrl.library.client import CLIENT_FILE
from vlrl.packing.layout import media_themselves
from vlrl.packing.options import PackOptions
from vlrl.packing.pack import pack
from vlrl.processors.auto import open_processor
from vlrl.rollout.context import RolloutContext, endpoint_of
from vlrl.rollout.episodes import SeedPath
from vlrl.rollout.groups import (
    require_played,
    require_scored,
    rollout_groups,
    score_groups,
)
from vlrl.run.checkpoint import written_atomically
from vlrl.run.engines import Engines
from vlrl.run.lock import run_lock
from vlrl.run.parity import parity_metrics, require_parity
from vlrl.run.players.player import masks_of
from vlrl.scoring.compose import ComposedReward, RewardFailure
from vlrl.sft import supervised_group
from vlrl.tracking.clock import Clock
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.events import Events
from vlrl.trainer.objective import Objective
from vlrl.types import FloatArray, Group, Sample


class ClientRun:
    """Processor, trainer and engines, started; every call returns when it is done."""

    def __init__(self, config: Config, stack: ExitStack) -> None:
        """Start everything; the stack stops it.

        Args:
            config: of the client; its run's folder is locked.
            stack: open as long as the client.

        Raises:
            VlrlError: see `vlrl.run.engines.Engines`.
        """
        with TrainConsole(config.run.name, 1) as console:
            self._events = Events(config.run_dir, console)
            stack.enter_context(run_lock(config.run_dir, self._events.tell))
            console.phase("loading the processor")
            self._processor = open_processor(config)
            self._reward: ComposedReward | None = None
            if config.rewards:
                self._reward = stack.enter_context(closing(ComposedReward.of_run(config, {})))
            self._runner = stack.enter_context(asyncio.Runner())
            host = stack.enter_context(EnvHost(config.env, max_open=config.episodes.max_episodes))
            console.phase("starting engines")
            engines = Engines(config, self._processor, stack, self._events, train=True, generate=True)
            engines.start(Clock())
        gc.freeze()  # as a run does, see vlrl.run.run
        stack.callback(gc.unfreeze)
        self._config, self._trainer, self._turns = engines.config, engines.trainer, engines.turns()
        self._masks = masks_of(config)
        self._context = RolloutContext(
            engines.policy, self._processor, host, self._config, endpoint_of(self._config)
        )
        stack.callback(lambda: self._runner.run(self._context.endpoint.close()))
        self._engines_follow = True

    def sample(
        self,
        rows: Sequence[Mapping[str, Any]],
        num_samples: int | None,
        greedy: bool,
        seed_paths: Sequence[SeedPath],
        version: int,
    ) -> list[Group]:
        """See `TrainingClient.sample`; the weights that generate are of this version."""
        samples = self._samples(rows)
        if self._engines_follow:
            self._turns.to_engines()
        else:
            self._turns.update(version)
            self._engines_follow = True
        playing = self._played(samples, num_samples, greedy, seed_paths, version)
        groups, failures = result_of(self._runner, playing)
        trajectories = [trajectory for group in groups for trajectory in group.trajectories]
        broken = [trajectory.failure for trajectory in trajectories if trajectory.failed]
        require_played(broken, len(trajectories), self._config.episodes.max_failed_share)
        num_scored = len(trajectories) - len(broken)
        require_scored(failures, num_scored, self._config.scoring.max_failed_share)
        return groups

    def _samples(self, rows: Sequence[Mapping[str, Any]]) -> list[Sample]:
        with ThreadPoolExecutor(self._config.data.num_workers) as executor:
            return list(executor.map(self._processor.sample, Rows(list(rows), RowMaker(), "rows")))

    async def _played(
        self,
        samples: Sequence[Sample],
        num_samples: int | None,
        greedy: bool,
        seed_paths: Sequence[SeedPath],
        version: int,
    ) -> tuple[list[Group], list[RewardFailure]]:
        options, baseline = self._config.episodes, self._config.algorithm.has_greedy_baseline
        result = await rollout_groups(
            samples,
            self._context,
            seed_paths=seed_paths,
            group_size=num_samples,
            greedy=greedy,
            greedy_beside=baseline and not greedy,
            stragglers=options.stragglers,
            branching=options.branching,
        )
        if self._reward is None:
            return result.groups, []
        return result.groups, await score_groups(result.groups, self._reward.score_all, version)

    def policy(
        self, groups: Sequence[Group], advantages: Sequence[Sequence[Advantage]] | None, version: int
    ) -> dict[str, float]:
        """See `TrainingClient.forward_backward`; the present weights are of this version."""
        algorithm = self._config.algorithm
        if advantages is not None:
            groups = with_advantages(groups, advantages, self._masks)
        elif self._reward is None:
            raise ConfigError(
                "forward_backward() was given no advantages, and without rewards there are no scores to make "
                "them of; give advantages, or rewards to TrainingClient"
            )
        else:
            assign_credit(groups, algorithm, self._masks)
        options = replace(PackOptions.of(self._config, algorithm), keeps_origins=False)
        return self._accumulate(pack(groups, media_themselves, options, version), "grpo", version)

    def likelihood(self, rows: Sequence[Mapping[str, Any]], version: int) -> dict[str, float]:
        """See `TrainingClient.forward_backward`."""
        samples = self._samples(rows)
        require_targets(samples)
        groups = [supervised_group(s, self._processor, self._config.sft.train_on) for s in samples]
        batch = pack(groups, media_themselves, PackOptions.of(self._config, generated=False))
        return self._accumulate(batch, "sft", version)

    def _accumulate(self, batch: Batch, objective: Objective, version: int) -> dict[str, float]:
        self._turns.to_trainer()
        metrics, differences = self._trainer.accumulate(batch, objective)
        if objective == "sft":
            return metrics
        if self._config.parity.every_step:
            require_parity(differences, self._config, when=f"before update {version + 1}")
        return metrics | parity_metrics(differences)

    def update(self, lr: float) -> dict[str, float]:
        """See `TrainingClient.optim_step`."""
        self._turns.to_trainer()
        self._engines_follow = False
        return self._trainer.update(lr)

    def logprobs(self, groups: Sequence[Group]) -> list[list[FloatArray]]:
        """See `TrainingClient.logprobs`."""
        probes = with_advantages(groups, [[1.0] * len(group.trajectories) for group in groups])
        batch = pack(probes, media_themselves, replace(PackOptions.of(self._config), keeps_origins=True))
        self._turns.to_trainer()
        return by_episode(probes, batch, self._trainer.logprobs(batch))

    def save(self, folder: Path, counts: str) -> None:
        """See `TrainingClient.save_state`; `counts` is the content of its own file."""
        self._turns.to_trainer()
        with written_atomically(folder) as aside:
            self._trainer.save(aside)
            self._processor.save(aside / "model")
            (aside / CLIENT_FILE).write_text(counts, encoding="utf-8")

    def load(self, folder: Path) -> None:
        """See `TrainingClient.load_state`."""
        self._turns.to_trainer()
        self._engines_follow = False
        for change in self._trainer.load(folder):
            self._events.note(change)

    def export(self, folder: Path) -> None:
        """See `TrainingClient.export`."""
        self._turns.to_trainer()
        with written_atomically(folder) as aside:
            self._trainer.save_model(aside)
            self._processor.save(aside)
