"""What a page needs around it: processor, engines, data, sinks, clock, and a clean end."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from vlrl.check.rewards.first_calls import call_rewards_first
from vlrl.config import Config
from vlrl.data.curriculum.open import Samplers, without_samplers
from vlrl.data.media_files import look_for_media
from vlrl.data.run_data import RunData, Sources, require_targets
from vlrl.environment.host.host import EnvHost
from vlrl.errors import Interrupted
from vlrl.plan.room import require_room
from vlrl.process.interrupts import Interrupts
from vlrl.process.network import rendezvous_port
from vlrl.processors.auto import open_processor
from vlrl.rollout.branch_points import try_envs
from vlrl.rollout.collector import Collector, require_healthy
from vlrl.rollout.context import RolloutContext, endpoint_of
from vlrl.rollout.endpoint.agent_episode import require_agents
from vlrl.run.checkpoint import RunState, SaveInterval, require_same_run
from vlrl.run.engines import Engines, death_of, raise_death
from vlrl.run.lineage import begin_folder
from vlrl.run.lock import run_lock
from vlrl.run.monitoring.monitor import Monitor
from vlrl.run.players.kept import KeptRollouts
from vlrl.run.players.opening import open_rollouts
from vlrl.run.players.player import Player, filters_of, masks_of
from vlrl.run.players.rollouts import GenerateFn
from vlrl.run.players.sample_log import SampleLog
from vlrl.run.resume import find_beginning
from vlrl.run.saving import FetchFn, Saver, open_buffer, open_replay
from vlrl.run.summary import write_summary
from vlrl.scoring.compose import ComposedReward
from vlrl.tracking.clock import Clock as Clock
from vlrl.tracking.console import TrainConsole
from vlrl.tracking.events import Events
from vlrl.tracking.learning_signal import LearningSignal
from vlrl.tracking.timeline import Timeline

T = TypeVar("T")


class Run:
    """A training run's surroundings, as a context: engines are up inside the block and gone after it.

    Attributes:
        config: the whole config.
        processor: of the model's family.
        engines: all that runs in Ray, once it is started.
        trainer: the ZeRO-3 ranks; absent in a run that does not train, and so is `saver`.
        saver: writes checkpoints, and has them completed.
        policy: the vLLM engine; absent in supervised training, and so are `reward` and `context`.
        context: what episodes are played with.
        collector: of the batches of GRPO, after `collect`.
        rollouts: where episodes are played, after `open_rollouts` or `collect`.
        timeline: spans of time by lane, with logging.timeline.
        first_step: 0, or where the checkpoint left off.
        num_done: steps that the run has done once `steps` has ended.
        samples: where it is noted which ones a step trains.
        kept: the rollouts of training on disk, after `collect`.
        signal: watches whether steps have anything to learn from.
        phases: seconds by phase, for the summary.
    """

    def __init__(
        self, config: Config, console: TrainConsole, *, train: bool, generate: bool, resume: bool = False
    ) -> None:
        self.config, self.console = config if train else without_samplers(config), console
        self.phases, self.interrupts = Clock(), Interrupts()
        self.events = Events(config.run_dir, console)
        self.signal = LearningSignal(self.events.tell)
        self._resume: tuple[Path, RunState] | None = None
        self._train, self._generate, self._is_resumed = train, generate, resume
        self._stack, self.first_step, self.num_done = ExitStack(), 0, config.num_steps
        self._generated: tuple[Collector, FetchFn] | None = None
        self._engines: Engines | None = None
        self.timeline = Timeline.of_run(config, resumed=resume) if train else Timeline()
        self._saver: Saver | None = None

    def __enter__(self) -> Self:
        """Check what is cheap to check, then start Ray and the engines side by side."""
        try:
            return self._open()
        except BaseException as error:
            self._close(error)
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Complete the last checkpoint, then stop everything that was started, last first.

        Raises:
            ResourceError: if all is done but the upload of the last checkpoint.
            TrainerDied: in place of an error of the engines whose cause is that a rank's process is gone.
            Interrupted: the same, if a signal had asked to stop.
        """
        try:
            if self._saver and (error is None or isinstance(error, Interrupted)):
                if self._saver.is_uploading:
                    self.console.phase("uploading the last checkpoint")
                self._saver.finish(is_done=error is None)
        finally:
            self._close(error)

    def _close(self, error: BaseException | None) -> None:
        self.interrupts.closing = True
        died = death_of(self._engines, error)
        self._stack.close()
        raise_death(died, error, asked_to_stop=self.interrupts.requested)

    def _open(self) -> Self:
        config, tell = self.config, self.events.tell
        self._stack.enter_context(self.interrupts)
        self._stack.callback(self.timeline.close)
        if self._train:
            self._stack.enter_context(run_lock(config.run_dir, tell))
            self.saver = self._saver = self._stack.enter_context(closing(Saver(config, tell)))
            self.saver.require_storage()
            self._begin = find_beginning(config, resume=self._is_resumed, tell=tell)
            self._resume, self.first_step = self._begin.checkpoint, self._begin.step
            self.interrupts.saved = self.first_step
            self._saver.selection.restore(self._resume and self._resume[1].selection)
            if config.ray.address is None:  # else rank 0 may be on another machine
                rendezvous_port(config.trainer.master_port)
        sources = Sources.open(config)
        # Of a run that does not train, the first samples are all of the training rows, and are read below.
        look_for_media((*(sources.train if self._train else ()), *sources.heldout), config, tell)
        if self._generate:
            self.reward = self._stack.enter_context(closing(ComposedReward.of_run(config, sources.rewards)))
            self._masks, self._filters = masks_of(config), filters_of(config)
        self._samplers = Samplers.open(config, sources.train, self.reward if self._generate else None)
        self.console.phase("loading the processor")
        self.processor = open_processor(config)
        supervised, orders = not self._generate, self._samplers.orders
        self.data = RunData(config, sources, self.processor, supervised=supervised, tell=tell, orders=orders)
        self.stream = self._stack.enter_context(closing(self.data)).stream
        self.first_samples = self.stream.batch(self.first_step)  # a broken row shows before an engine starts
        if self._generate:
            require_agents(self.first_samples, config)
        else:
            require_targets(self.first_samples, preferences=config.preferences is not None)
        if self._train:
            require_room(config, self.first_samples, self.console.note, engine=self._generate)
            self._open_folder()
        self.runner = self._stack.enter_context(asyncio.Runner())
        if self._generate:
            tried = self.first_samples[: config.scoring.num_tried]
            call_rewards_first(tried, self.reward, self.processor, self.runner, tell)
            max_open, around = config.episodes.max_episodes, self.timeline.around_env
            self.host = self._stack.enter_context(EnvHost(config.env, max_open=max_open, around=around))
            self.runner.run(try_envs(self.first_samples, self.host, config, train=self._train))
        self.interrupts.check()
        self.console.phase("starting engines")
        with self.phases.measure("start engines"):
            self._start_engines()
        self.interrupts.check()
        # Else each full collection looks at all that libraries have loaded, and stops the loop for 0.5 s.
        gc.freeze()
        self._stack.callback(gc.unfreeze)
        return self

    def _open_folder(self) -> None:
        config, run_dir = self.config, self.config.run_dir
        begin_folder(config, self.data.sources, self.first_step)
        monitor = Monitor(config, self.events, self.console, resume_step=self.first_step)
        self.monitor = self._stack.enter_context(closing(monitor))
        if self._generate:
            self.samples = self._stack.enter_context(closing(SampleLog(run_dir, first_step=self.first_step)))

    def _start_engines(self) -> None:
        self._engines = self.engines = engines = Engines(
            self.config, self.processor, self._stack, self.events, train=self._train, generate=self._generate
        )
        self.config = config = engines.config
        if self._resume is not None:
            require_same_run(self._resume[1], config)  # the ranks are counted now
        if self._train:
            self._stack.enter_context(self.monitor.watching(engines, self.runner.get_loop()))
        engines.start(self.phases)
        if self._train:
            self.trainer, self.turns = engines.trainer, engines.turns()
        if self._generate:
            self.policy, self.reservation = engines.policy, engines.reservation
            self.context = RolloutContext(
                self.policy, self.processor, self.host, config, endpoint_of(config), self.timeline
            )
            self._stack.callback(lambda: self.runner.run(self.context.endpoint.close()))
        if self._resume is not None:
            self.turns.to_trainer()
            for change in self.trainer.load(self._resume[0]):
                self.console.note(change)
            self.saver.complete(self._resume[0])
            if self._generate:
                self.turns.update(self.first_step)

    def open_rollouts(self) -> None:
        """Make `self.rollouts`: start the rollout workers, if there are any."""
        player = Player(self.config, self.stream, self.context, self.reward, self._masks, self._filters)
        with self.phases.measure("start rollout workers"):
            self.rollouts = open_rollouts(player, self.reservation, self.policy, self.events.tell)
        self._stack.callback(lambda: self.runner.run(self.rollouts.close()))

    def collect(self, generate: GenerateFn) -> None:
        """Make `self.collector`, which goes on where the checkpoint left off."""
        config = self.config
        self.open_rollouts()
        self.collector = Collector(
            open_buffer(config, self._resume, self._samplers.rows),
            partial(self.rollouts.play, generate),
            filters=[name for name, _ in self._filters],
            options=config.batch,
            streams=config.asynchronous.streams,
            check=partial(require_healthy, config),
            prefetch=self.rollouts.prefetch,
            replay=open_replay(config, self._resume),
            keeps_refused=config.logging.rollouts.every > 0,
        )
        self.kept = KeptRollouts(config, self.rollouts, self.trainer, self.first_step, self.events.tell)
        self._stack.callback(self.kept.close)
        self._stack.callback(lambda: self.runner.run(self.collector.close()))
        self._generated = self.collector, self.rollouts.fetch

    def run_blocking(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do what blocks; in async mode in a thread, while groups are finished on the event loop."""
        if not self.config.asynchronous.streams:
            return work(*arguments)
        return self.runner.run(asyncio.to_thread(work, *arguments))

    def steps(self, phase: str) -> Iterator[int]:
        """The steps still to do; saves at the interval, at the end and when a signal asks to stop.

        Args:
            phase: the name that the console shows, and that the summary gives their time under.

        Raises:
            Interrupted: after the save that a signal asked for.
        """
        self.console.phase(phase, self.config.num_steps)
        with self.phases.measure(phase):
            yield from self._steps()

    def _steps(self) -> Iterator[int]:
        interval, num_steps = SaveInterval(self.config.checkpoint), self.config.num_steps
        self.interrupts.check()
        self.interrupts.graceful = True
        try:
            for step in range(self.first_step, num_steps):
                if ending := self.saver.selection.ending:
                    self.console.note(f"training ends: {ending}")
                    self.num_done = step
                    break
                self.interrupts.step = step + 1
                yield step
                asked = self.interrupts.requested or self.saver.selection.must_save(step + 1)
                if asked or step + 1 == num_steps or interval.is_due(step):
                    self.save(step + 1)
                    interval.saved()
                if self.interrupts.requested:
                    if self.interrupts.saved <= step:  # it came since the line above that asks
                        self.save(step + 1)
                    raise Interrupted(
                        f"stopped after step {step + 1} of {num_steps}, saved; continue with --resume"
                    )
        finally:  # after the steps a signal interrupts at once again
            self.interrupts.graceful = False

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write a step's metrics to every sink, show them, and call the program's callbacks."""
        if metrics.get("optim/skipped_fraction"):
            self.console.note(f"step {step + 1}: a gradient was not finite, so its update was left out")
        self.monitor.sinks.log(step, values := {**metrics, **self.engines.nodes.take_metrics()})
        self.saver.selection.note(step + 1, metrics, self.console.note)
        self.console.step(step, values)
        self.console.callbacks.step(step, values, self.kept.read if self._generated else None)

    def save(self, next_step: int) -> None:
        """Write a checkpoint from which `next_step` goes on."""
        with self.phases.measure("checkpoints"):
            if self._generated is not None:
                self.kept.flush()
            self.turns.to_trainer()
            self.saver.save(next_step, self.trainer, self.processor, self._generated)
        self.interrupts.saved = next_step

    def export_model(self) -> Path:
        """Write the trained model to RUN/model, in Hugging Face format."""
        self.turns.to_trainer()
        return self.saver.export(self.trainer, self.processor)

    def write_summary(self, **values: Any) -> dict[str, Any]:
        """Write summary.json and return it, see `vlrl.run.summary`."""
        values = {"num_steps": self.num_done, **self.saver.selection.summary(), **values}
        return write_summary(self.config, self.phases, self.engines.choices, values)
