"""Evaluation of models: analogies, word pairs, held-out text, perplexity, effective rank, comparison of two models."""
