"""What a model predicts: perplexity, rank."""
