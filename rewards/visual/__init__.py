"""Rewards on places in an image or a video: boxes, points, masks, tracks, spans of time."""
