"""The commands of `w2v`: options in, results out. The work is done in the other modules."""
