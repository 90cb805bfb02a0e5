"""The least time in which an asynchronous run can do its work, from what was measured in parts.

Two things no order of work can get below, and the larger one is the bound:

1. The processor. The run's CPU seconds over the number of cores. All processes share the cores, so only
   waiting can be hidden (work that is not waiting at best fills every core).
2. The longest path through the slots. With pipeline depth D and staleness bound h, batch k is admitted when
   batch k - D has been cut and the update of batch k - h - 1 is in; it is whole once its slowest episode has
   waited for its environment and generated its turns; it is cut once the trainer is free, trained in step_s:

       admitted(k) = max(cut(k - D), trained(k - h - 1))
       cut(k)      = max(admitted(k) + slowest episode of k, trained(k - 1))
       trained(k)  = cut(k) + step_s

   A turn counts with the fastest request that was ever seen, an update and a step with their time on an
   otherwise idle machine. So contention and queues can only add to it.

The limit of the speed-up is the synchronous run's time over this bound; the share of the limit that a
run reaches is the bound over its time.
"""

from __future__ import annotations

from collections.abc import Sequence


def path_seconds(
    slowest_s: Sequence[float], step_s: float, *, pipeline_depth: int, max_staleness: int
) -> float:
    """The longest path through the slots.

    Args:
        slowest_s: of each batch, its slowest episode alone on the machine.
        step_s: one step of the trainer and the update after it.
        pipeline_depth: batches' worth of slots.
        max_staleness: most updates between a token and its training.

    Returns:
        Seconds until the last batch is trained.
    """
    cut: list[float] = []
    trained: list[float] = []
    for batch, slowest in enumerate(slowest_s):
        slots_back = cut[batch - pipeline_depth] if batch >= pipeline_depth else 0.0
        timely = trained[batch - max_staleness - 1] if batch > max_staleness else 0.0
        free = trained[-1] if trained else 0.0
        cut.append(max(max(slots_back, timely) + slowest, free))
        trained.append(cut[-1] + step_s)
    return trained[-1]


def least_seconds(path_s: float, cpu_s: float, num_cores: int) -> float:
    """The larger of the two bounds."""
    return max(path_s, cpu_s / num_cores)
