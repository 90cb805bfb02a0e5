"""`vlrl env play`: a person plays an environment in the browser, and keeps good episodes."""
