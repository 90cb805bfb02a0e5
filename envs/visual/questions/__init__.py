"""One image, one question, one answer."""
