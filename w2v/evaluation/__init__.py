"""Evaluation of models: perplexity, rank, scores with intervals, comparison."""
