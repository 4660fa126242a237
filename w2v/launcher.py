"""The rank and number of ranks that MPI launchers set in the environment of a process."""

import os

# The rank and the number of ranks: MPICH, Intel MPI and srun; Open MPI; MVAPICH; PMIx, which has no number.
VARIABLES = {
    "PMI_RANK": "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",
    "PMIX_RANK": "",
}


def launched() -> tuple[int, int] | None:
    """The rank of this process and the number of ranks (0 if unknown); None without a launcher."""
    for rank, size in VARIABLES.items():
        if os.environ.get(rank, "").isdecimal():
            return int(os.environ[rank]), int(os.environ.get(size, "0"))
    return None
