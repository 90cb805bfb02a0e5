"""GPUs that trainer and engines share: which of them has the memory, in the order that the driver keeps."""

from __future__ import annotations

from typing import Protocol

from vlrl.weights.manifest import Manifest


class TrainerTurns(Protocol):
    """What turns need of a trainer."""

    @property
    def manifest(self) -> Manifest:
        """The weights that were written last."""

    def sleep(self) -> None:
        """Give the GPUs' memory up."""

    def wake(self) -> None:
        """Take it back."""

    def write_weights(self, *, checked: bool = False) -> None:
        """Write the weights as a new version, whose bytes engines compare if it is checked."""


class EngineTurns(Protocol):
    """What turns need of the engines."""

    def sleep(self) -> None:
        """Give the GPUs' memory up."""

    def load_weights(self, manifest: Manifest, version: int) -> float:
        """Take it back, and load weights; seconds for which nothing was generated."""


class Turns:
    """Lets the trainer or the engines have the GPUs, one at a time; without shared GPUs both have theirs.

    Attributes:
        version: of the weights that the engines were sent last.
    """

    def __init__(self, trainer: TrainerTurns, engines: EngineTurns | None, *, shared: bool) -> None:
        """Begin with the engines, while the trainer sleeps; a supervised run has no engines."""
        self._trainer, self._engines, self._shared = trainer, engines, shared
        self.version = 0
        self._trains, self._sent = False, False

    def to_trainer(self) -> None:
        """Whatever follows asks the trainer."""
        if self._engines is not None and self._shared and not self._trains:
            self._engines.sleep()
            self._trainer.wake()
            self._trains = True

    def to_engines(self) -> None:
        """Whatever follows generates, under the weights that the engines had before."""
        if self._shared and self._trains:
            self._hand_over()

    def update(self, version: int, *, checked: bool = False) -> float:
        """Send the trainer's weights to the engines; seconds for which these generated nothing.

        Args:
            version: under which the engines generate from now on.
            checked: whether engines compare every byte with what the trainer has; of the first update they
                always do, since a transfer that damages weights mostly damages all of them.
        """
        self.to_trainer()
        self._trainer.write_weights(checked=checked or not self._sent)
        self.version, self._sent = version, True
        return self._hand_over()

    def _hand_over(self) -> float:
        if self._shared:
            self._trainer.sleep()
            self._trains = False
        return self._engines.load_weights(self._trainer.manifest, self.version) if self._engines else 0.0
