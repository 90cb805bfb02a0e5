"""What grammars of actions are made of: calls, JSON, keys, tolerance."""
