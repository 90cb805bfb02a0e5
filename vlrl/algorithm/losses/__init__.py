"""What moves the policy: functions of the log-probabilities and advantages of single tokens."""
