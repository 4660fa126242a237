"""Read the rank and number of ranks that an MPI launcher sets in the environment."""

import os

from w2v._errors import SettingsError

# The variables with the rank and with the number of ranks.
VARIABLES = {
    "PMI_RANK": "PMI_SIZE",  # MPICH, Intel MPI, srun
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",  # Open MPI
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",  # MVAPICH
    "PMIX_RANK": "SLURM_STEP_NUM_TASKS",  # PMIx, where only srun sets the number
}


def mpi_rank_and_size() -> tuple[int, int] | None:
    """Return the MPI rank of this process and the number of ranks (0 if unknown), or None without a launcher.

    Raises:
        SettingsError: If the variable for the number of ranks is not a number.
    """
    for rank, size in VARIABLES.items():
        if os.environ.get(rank, "").isdecimal():
            number = os.environ.get(size) or "0"
            if rank == "PMIX_RANK" and number == "0" and "PMIX_NAMESPACE" not in os.environ:
                continue  # not a PMIx launcher: MPI would look for a PMIx server and abort
            if not number.isdecimal():
                raise SettingsError(
                    f"{size} {number!r}: it must be a number of ranks; to train without MPI, unset {rank}"
                )
            return int(os.environ[rank]), int(number)
    return None
