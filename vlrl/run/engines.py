"""Ray, trainer and engines of a run: placed, started in the right order, and stopped with its stack."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from textwrap import shorten

from vlrl.choices import MachineChoice
from vlrl.cluster import NodeMonitor, Processes, Reservation, check_nodes, check_versions, cluster, nodes
from vlrl.config import Config
from vlrl.config.engine import Transport
from vlrl.config.memory import rounds_base
from vlrl.engine.policy import VllmPolicy
from vlrl.errors import EngineError, Interrupted, NodeLost, ResourceError, TrainerDied
from vlrl.placement.layout import Layout, lay_out, resolved
from vlrl.processors.teacher import require_fitting_others
from vlrl.protocols import Processor
from vlrl.run.lock import LOCK_FILE
from vlrl.run.turns import Turns
from vlrl.tracking.clock import Clock
from vlrl.tracking.events import Events
from vlrl.trainer.driver import Trainer

POLL_S = 1.0
"""Seconds between looks at the cluster's nodes."""

MAX_CAUSE_CHARS = 500
"""Kept of what Ray says of a death, which is a page."""


class Engines:
    """What a run reserves and starts in Ray.

    Attributes:
        config: the run's, with the numbers of ranks and replicas that there is room for.
        trainer: of a run that trains, once `start` has been called.
        policy: of a run that generates, likewise.
        reservation: places of ranks, engines and rollout workers.
        choices: what ranks and engines chose for their machines, likewise.
        nodes: monitors the machines.
        processes: those of ranks, engines and rollout workers, as they are now.
    """

    def __init__(
        self,
        config: Config,
        processor: Processor,
        stack: ExitStack,
        events: Events,
        *,
        train: bool,
        generate: bool,
    ) -> None:
        """Start or join Ray and reserve GPUs and cores; the stack gives everything back.

        Raises:
            ResourceError: if there are too few, or other runs keep them for ray.start_timeout_s; or if nodes
                cannot reach each other, or have other versions of what computes.
            ConfigError: if a node lacks the model's folder; see also `require_fitting_others`.
        """
        self._processor, self._stack, self._events = processor, stack, events
        self.choices: list[MachineChoice] = []
        self._train, self._generate = train, generate
        if train:
            require_fitting_others(config, processor)
        stack.enter_context(cluster(config))
        if config.generator.servers and generate and not train:  # their weights are those of a training run
            events.note("generator.servers train alone; an engine of this run generates")
            own = config.generator.model_copy(update={"servers": []})
            config = config.model_copy(update={"generator": own})
        layout = self._layout(config)
        self.config = resolved(config, layout)
        self._share_gpus = layout.takes_turns
        if config.ray.address is not None:
            check_versions(layout.addresses)
        self.processes = Processes.of_run(config)
        self.reservation = Reservation(layout, config.ray.start_timeout_s, self.processes)
        stack.callback(self.reservation.close)
        self.nodes = NodeMonitor(layout.addresses, self.config.run_dir, events)
        stack.callback(self.nodes.close)
        check_nodes(self.reservation.addresses, config.model.path, self.reservation.gpus)
        if layout.on_gpu or layout.num_nodes > 1:
            for line in layout.lines():
                events.note(line)
        if config.weights.transport == "auto":
            self._tell(_transport_choice(self.config.weights.transport))

    def _layout(self, config: Config) -> Layout:
        """The layout on the cluster's nodes; one that was there before is given time to get more of them."""
        waits_s = config.ray.start_timeout_s if config.ray.address is not None else 0.0
        end, noted = time.monotonic() + waits_s, False
        while True:
            found = nodes()
            try:
                layout = lay_out(config, found, train=self._train, generate=self._generate)
            except ResourceError as error:
                if time.monotonic() > end:
                    raise
                if not noted:
                    self._events.note(f"waiting {waits_s:g} s (ray.start_timeout_s) for nodes: {error}")
                noted = True
                time.sleep(POLL_S)
            else:
                if noted:
                    self._events.note(f"the nodes are there: {', '.join(node.name for node in found)}")
                return layout

    def start(self, phases: Clock) -> None:
        """Start ranks and engines side by side; where they share GPUs one after the other.

        An engine counts the memory that is free when it starts, so the trainer has given its own up by then;
        its process has imported vLLM meanwhile.
        """
        if self._train:
            self.trainer = Trainer(
                self.config,
                self._processor.banned_token_ids,
                self.reservation,
                shared_file=self.config.run_dir / LOCK_FILE,
            )
            self._stack.callback(self.trainer.close)
        if self._generate:
            self.policy = VllmPolicy(self.config, self._processor, self.reservation)
            self._stack.callback(self.policy.close)
            if not self._share_gpus:
                self.policy.start()
        if self._train:
            self._wait_for_trainer(phases)
            if self._share_gpus:
                self.trainer.sleep()
        if self._generate:
            phases.seconds["start vLLM"] = self.policy.wait_ready()
            self._tell(self.policy.choices())
            if self.config.generator.servers:  # which have the weights of the last run that used them
                self.trainer.write_weights(checked=True)
                self.policy.load_weights(self.trainer.manifest, 0)

    def turns(self) -> Turns:
        """Whose turn it is; the engines' after `start`, if there are any.

        They have read model.path, and of a trainer whose base is rounded they are sent the weights first.
        """
        turns = Turns(self.trainer, self.policy if self._generate else None, shared=self._share_gpus)
        if self._generate and rounds_base(self.config):
            turns.update(0)
        return turns

    def death_message(self) -> str:
        """Which rank's process is gone, in words; "" if none is."""
        return self.trainer.death_message() if hasattr(self, "trainer") else ""

    def _wait_for_trainer(self, phases: Clock) -> None:
        phases.seconds["start trainer"] = self.trainer.wait_ready()
        self._tell(self.trainer.choices())

    def _tell(self, choices: Sequence[MachineChoice]) -> None:
        """Print choices and keep them; a slower way is an event, which tools find too."""
        self.choices += choices
        for choice in choices:
            if choice.is_slower:
                self._events.tell("slower_path", str(choice))
            else:
                self._events.note(str(choice))


def _transport_choice(used: Transport) -> list[MachineChoice]:
    """How weights travel with weights.transport=auto, where that is not through shared memory."""
    if used != "broadcast":
        return []
    reason = "an engine is on a node without a rank"
    cost = "every parameter is gathered on one rank, and a dead engine cannot be replaced"
    return [MachineChoice("weights' transport", "shared_memory", used, reason, cost)]


def death_of(engines: Engines | None, error: BaseException | None) -> str:
    """Who has died, if that is the cause of an error; "" if it is not."""
    died = engines.death_message() if engines and isinstance(error, EngineError) else ""
    return died or (str(error) if isinstance(error, NodeLost) else "")


def raise_death(died: str, error: BaseException | None, *, asked_to_stop: bool) -> None:
    """Raise TrainerDied, or Interrupted if a signal had asked to stop; nothing where `died` is ""."""
    if died and asked_to_stop:
        raise Interrupted(f"{died}, and a signal asked to stop: continue with --resume") from error
    if died:
        raise TrainerDied(f"{died} ({shorten(str(error), MAX_CAUSE_CHARS)})") from error
