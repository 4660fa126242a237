"""Plots of models: word maps, analogies as arrows, and curves of a training run."""
