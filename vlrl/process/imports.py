"""Importing what is large."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def large_imports() -> Iterator[None]:
    """Import large libraries without a garbage collection; later ones pass over what there is at the end.

    An import makes a great many objects and hardly any garbage: looking for it again and again takes a tenth
    of vLLM's import. Only imports belong in the block: what else ends in it is not freed in time.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
