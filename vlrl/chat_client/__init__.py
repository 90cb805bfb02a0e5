"""Client of an OpenAI-compatible server: for judges, and for evaluations of models that are elsewhere."""
