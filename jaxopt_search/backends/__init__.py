# pyright: basic
"""How the same portable code runs under XLA, as one compiled function, and in kernels.

Nothing here knows of an algorithm: a kernel is the loop around `Search.step`, and the same step
runs under XLA. A kernel is emitted as C++ when one is asked for (`cuda`).
"""

from jaxopt_search.backends.choice import (
    MAX_STEPS,
    Choice,
    Implementation,
    choose,
    distrust,
    for_each,
    launch,
    obstacle,
    refusal,
    runs_kernels,
)

__all__ = [
    "MAX_STEPS",
    "Choice",
    "Implementation",
    "choose",
    "distrust",
    "for_each",
    "launch",
    "obstacle",
    "refusal",
    "runs_kernels",
]
