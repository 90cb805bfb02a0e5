"""Published benchmarks in the formats of their authors. See `vlrl.data.benchmarks.rows`."""
