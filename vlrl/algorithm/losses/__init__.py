"""Policy losses: functions of the log-probabilities and advantages of single tokens."""
