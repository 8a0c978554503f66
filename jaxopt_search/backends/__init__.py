"""How the same portable code runs under XLA, as one compiled function, and in kernels.

Nothing here knows of an algorithm: a kernel is the loop around `Search.step`, and the same step
runs under XLA. Pallas is imported when a kernel is asked for.
"""

from jaxopt_search.backends.choice import (
    Choice,
    Implementation,
    choose,
    has_triton,
    runs_kernels,
    too_old_for_triton,
)
from jaxopt_search.backends.triton import MAX_STEPS, launch, options

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
