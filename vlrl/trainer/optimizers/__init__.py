"""Optimizers of a rank: AdamW in float32 or 8 bit, and Muon, over ZeRO-3's slices."""
