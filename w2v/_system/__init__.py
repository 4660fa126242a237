"""Files, memory, threads and signals of the operating system, MPI launchers, and the version of this package."""
