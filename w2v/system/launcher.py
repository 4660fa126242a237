"""The rank and number of ranks that MPI launchers set in the environment of a process."""

import os

from w2v.errors import SettingsError

# The rank and the number of ranks: MPICH, Intel MPI and srun; Open MPI; MVAPICH; PMIx, of which only srun has a number.
VARIABLES = {
    "PMI_RANK": "PMI_SIZE",
    "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE",
    "MV2_COMM_WORLD_RANK": "MV2_COMM_WORLD_SIZE",
    "PMIX_RANK": "SLURM_STEP_NUM_TASKS",
}


def launched() -> tuple[int, int] | None:
    """The rank of this process and the number of ranks (0 if unknown); None without a launcher.

    Raises SettingsError if the number is none.
    """
    for rank, size in VARIABLES.items():
        if os.environ.get(rank, "").isdecimal():
            number = os.environ.get(size) or "0"
            if rank == "PMIX_RANK" and number == "0" and "PMIX_NAMESPACE" not in os.environ:
                continue  # no PMIx launcher: MPI would abort when it found no server
            if not number.isdecimal():
                raise SettingsError(f"{size} {number!r}: it must be a number of ranks; unset {rank} to train on one")
            return int(os.environ[rank]), int(number)
    return None
