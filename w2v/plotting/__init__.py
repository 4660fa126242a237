"""Pictures of models: maps of words, analogies as arrows, the course of a training run."""
