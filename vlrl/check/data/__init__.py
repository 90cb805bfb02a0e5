"""`vlrl data check`: finds faults in data before a GPU is rented."""
