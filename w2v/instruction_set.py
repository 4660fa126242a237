"""The instruction set of the compiled step."""

import os

from w2v._kernels import step_for
from w2v.errors import SettingsError

INSTRUCTION_SETS = ("avx512", "avx2", "neon", "baseline")  # the fastest first


def available_sets() -> list[str]:
    """The instruction sets that this machine supports, the fastest first."""
    return [name for name in INSTRUCTION_SETS if step_for(name)]


def instruction_set() -> str:
    """The instruction set in use: the fastest that this machine supports, or the one that W2V_SIMD names.

    Raises SettingsError if W2V_SIMD names one that it does not support.
    """
    available = available_sets()
    chosen = os.environ.get("W2V_SIMD") or available[0]
    if chosen not in available:
        raise SettingsError(f"W2V_SIMD={chosen}: this machine supports {', '.join(available)}")
    return chosen
