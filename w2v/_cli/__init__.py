"""The command-line program `w2v`."""
