"""What held-out answers say: means over rows with intervals, by set and category; kept, and from anywhere."""
