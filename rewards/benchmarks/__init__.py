"""Official scorers of benchmarks, as their authors define them: what they let pass is their definition."""
