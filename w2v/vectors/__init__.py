"""Trained vectors: search, analogies, word pairs."""
