"""Files of every common format, each read a record at a time."""
