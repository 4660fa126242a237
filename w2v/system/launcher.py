"""Read the rank and number of ranks that an MPI launcher sets in the environment."""

import os

from w2v.errors import SettingsError

# Variables of the rank and the number of ranks: MPICH, Intel MPI and srun; Open MPI; MVAPICH; PMIx. With PMIx, only
# srun sets the number.
VARIABLES = {
    "PMI_RANK": "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",
    "PMIX_RANK": "SLURM_STEP_NUM_TASKS",
}


def rank_and_size() -> tuple[int, int] | None:
    """Return the MPI rank of this process and the number of ranks (0 if unknown), or None without a launcher.

    Raises SettingsError if the variable for the number of ranks is not a number.
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
