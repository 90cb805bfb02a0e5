"""A model as a judge: a rubric, an endpoint that speaks OpenAI's protocol, verdicts kept on disk."""
