"""Several policies as adapters on one model."""
