"""Create the kernel that the settings of a run name: Cython's or Numba's."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from w2v._formats import bfloat16
from w2v._kernel.plan import Plan, instruction_set
from w2v._kernels import Kernel


def new_kernel(plan: Plan, inputs: NDArray[Any], parameters: Mapping[str, NDArray[Any]]) -> Any:
    """Return a kernel that trains these input rows and parameters of the loss in place; see Kernel and loop.Kernel."""
    if plan.settings.kernel == "numba":
        return numba_kernel().Kernel(plan, inputs, parameters)
    return Kernel(plan, bfloat16.as_uint16(inputs), bfloat16.as_uint16(parameters["outputs"]))


def own_instruction_set(kernel: str) -> str:
    """Return the target of the machine code of a kernel on this machine; see Plan."""
    return str(numba_kernel().target_name()) if kernel == "numba" else instruction_set()


def numba_kernel() -> Any:
    """Import and return the module of the Numba kernel. It is imported late, because Numba is optional and slow."""
    return import_module("w2v._kernel.numba_kernel")
