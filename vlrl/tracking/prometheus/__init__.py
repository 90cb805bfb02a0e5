"""What Prometheus is served of a run: the driver's metrics, and where to find those of all processes."""
