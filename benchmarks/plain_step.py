"""vLLM's side of generation.py with its own kernels and block size. Not run by hand.

.venv/bin/python benchmarks/plain_step.py JOB.json
"""

from __future__ import annotations

from raw_step import main

if __name__ == "__main__":
    main(plain=True)
