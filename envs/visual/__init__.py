"""Visual-reasoning tasks."""
