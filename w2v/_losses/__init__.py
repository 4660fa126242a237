"""The losses: which output rows predict a word, and how their scores become a gradient."""
