"""Trained vectors: look-up, nearest neighbours, queries, and vectors of texts."""
