"""Drawing: shapes, figures, plots, tiles; the same pixels on every machine."""
