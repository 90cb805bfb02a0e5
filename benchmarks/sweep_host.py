"""What episodes cost besides the model: sessions (the ledger) and packing, in CPU seconds of one process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cases import Case

REPEATS = 3


def host_cost(case: Case) -> dict[str, Any]:
    """Least CPU seconds of REPEATS: of writing a step's episodes into sessions, and of packing them."""
    import numpy as np
    from train_groups import make_groups

    from vlrl.packing.options import PackOptions
    from vlrl.packing.pack import pack
    from vlrl.types import Media

    def blank(media: Sequence[Media]) -> dict[str, Any]:
        grids = np.array([m.grid_thw for m in media], np.int64).reshape(-1, 3)
        return {"pixel_values": np.zeros((int(grids.prod(1).sum()), 1), np.float32), "image_grid_thw": grids}

    options = PackOptions(
        num_ranks=1,
        max_tokens=8192,
        max_completion_tokens=case.completion_tokens,
        max_turns=case.turns,
        images_once=True,
    )
    sessions, packing = [], []
    for _ in range(REPEATS):
        begin = time.process_time()
        groups = make_groups(case)
        made = time.process_time()
        [batches] = pack(groups, blank, options)
        sessions.append(made - begin)
        packing.append(time.process_time() - made)
    ledgers = [ledger for g in groups for t in g.trajectories for ledger in t.ledgers]
    return {
        "sessions": {"cpu": sessions},
        "packing": {"cpu": packing},
        "num_tokens": sum(len(ledger.token_ids) for ledger in ledgers),
        "num_packed": sum(len(batch.input_ids) for batch in batches),
    }
