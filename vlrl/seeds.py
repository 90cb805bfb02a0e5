"""Law 8: every random choice is a pure function of where it is made, so a resumed run repeats it."""

from __future__ import annotations

import hashlib


def derive_seed(*path: int | str) -> int:
    """A 63-bit seed from a path such as (run seed, step, position, sample id, group index, turn).

    Distinct paths give distinct seeds up to hash collision (2⁻⁶³ a pair); the parts are length-marked,
    so ("a", "bc") and ("ab", "c") differ.
    """
    text = "\x1f".join(f"{type(part).__name__}{len(str(part))}:{part}" for part in path)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1
