"""What MPI launchers tell a process through its environment."""

import os

# The rank and the number of ranks: MPICH, Intel MPI and srun; Open MPI; MVAPICH; PMIx, which does not tell the number.
VARIABLES = {
    "PMI_RANK": "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",
    "PMIX_RANK": "",
}


def launched() -> tuple[int, int] | None:
    """The rank of this process and the number of ranks, 0 where it is not known; None without a launcher."""
    for rank, size in VARIABLES.items():
        if os.environ.get(rank, "").isdecimal():
            return int(os.environ[rank]), int(os.environ.get(size, "0"))
    return None
