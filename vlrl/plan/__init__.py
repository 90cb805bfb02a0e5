"""What a run will need, told from its config and the model's shapes before anything is loaded."""
