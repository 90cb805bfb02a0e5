"""This process: its signals, its standard output, its event loops."""
