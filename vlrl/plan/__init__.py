"""Prediction of what a run needs, from its config and the model's shapes, before anything is loaded."""
