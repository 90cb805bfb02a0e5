"""What a model wrote, read strictly: text, JSON, numbers, places, tool calls. Parsed, never evaluated."""
