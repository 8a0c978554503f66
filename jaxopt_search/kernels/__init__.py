"""How a portable step runs as a fused GPU kernel: in a loop, one Pallas program per search.

Nothing here knows of an algorithm: a kernel is the loop around `Search.step`, and the same step
runs under XLA. Pallas is imported when a kernel is asked for.
"""

from jaxopt_search.kernels.choice import (
    Choice,
    Implementation,
    choose,
    has_triton,
    runs_kernels,
    too_old_for_triton,
)
from jaxopt_search.kernels.launcher import MAX_STEPS, launch, options

__all__ = [
    "MAX_STEPS",
    "Choice",
    "Implementation",
    "choose",
    "has_triton",
    "launch",
    "options",
    "runs_kernels",
    "too_old_for_triton",
]
