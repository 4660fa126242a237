"""Training: settings and text in, a model out; checkpoints."""
