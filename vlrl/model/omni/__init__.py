"""Models that hear: the thinker of a Qwen-Omni model, and audio towers beside vision towers."""
