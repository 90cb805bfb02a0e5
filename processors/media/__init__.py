"""Images and videos: from any source to the pixels that a model sees, decoded once."""
