"""The machine: memory, threads, files, signals, and what a launcher says; and this package's version."""
