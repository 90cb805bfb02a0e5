"""The critic of a rank: a second trained model, and what its values make of rewards."""
