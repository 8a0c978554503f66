# pyright: basic
"""How the same portable code runs under XLA, as one compiled function, and in kernels.

Nothing here knows of an algorithm: a kernel is the loop around `Search.step`, and the same step
runs under XLA. Pallas is imported when a kernel is asked for.
"""

from jaxopt_search.backends.choice import (
    MAX_STEPS,
    Choice,
    Implementation,
    choose,
    has_triton,
    launch,
    launch_grid,
    refusal,
    runs_kernels,
)

__all__ = [
    "MAX_STEPS",
    "Choice",
    "Implementation",
    "choose",
    "has_triton",
    "launch",
    "launch_grid",
    "refusal",
    "runs_kernels",
]
