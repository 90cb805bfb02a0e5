"""How a conversation becomes text, and tokens their positions."""
