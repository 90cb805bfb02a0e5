"""Rollouts kept on disk: those shown in the report as JSON, those of training as a table a step."""
