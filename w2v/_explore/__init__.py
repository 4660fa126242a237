"""A page to explore models with: one file that needs no network, or served for the whole vocabulary."""
