"""Training: settings and a text become a model; checkpoints save a run so that it can be resumed."""
