"""Errors a user can act on: each names the thing, the place and the remedy."""

from __future__ import annotations


class VlrlError(Exception):
    """Base of vlrl's own errors; the command line prints them without a traceback, exit code 1."""

    exit_code = 1


class ConfigError(VlrlError):
    """A wrong option, key, name or path: exit code 2."""

    exit_code = 2


class DataError(VlrlError):
    """A dataset, row or medium that cannot be used."""


class DatasetMissing(DataError):
    """A dataset's file or folder that is not there: exit code 2, as for every other wrong path."""

    exit_code = 2


class EngineError(VlrlError):
    """vLLM, DeepSpeed or Ray failed, or what they report breaks one of the laws."""


class EngineDied(EngineError):
    """An engine's process is gone."""


class TrainerDied(EngineDied):
    """A rank's process is gone, and with it a part of the weights: a checkpoint has them."""


class NodeLost(EngineError):
    """A machine has left the cluster, and with it the places of some of the run's processes."""


class CheckpointError(VlrlError):
    """A checkpoint's files are not what was written."""


class EnvError(VlrlError):
    """Environments failed in more episodes than the run tolerates."""


class NoOracle(VlrlError):
    """An environment's oracle does not know the task at hand; of others it may."""


class ScoringError(VlrlError):
    """Rewards failed on more completions than the run tolerates."""


class ResourceError(VlrlError):
    """Too little disk, memory or shared memory, or a port in use."""


class InternalError(VlrlError):
    """A failure nobody foresaw: a bug of vlrl's or of a plug-in's."""


class Interrupted(VlrlError):
    """Stopped by Ctrl-C or SIGTERM after a clean save: exit code 130."""

    exit_code = 130
