"""The pages: a run's report, samples, what a reward pays for, what a check of data found."""
