"""A GPU and the CPU's cores together on one problem, the first to reach the target ending both.

    python -m experiments.together
    python -m experiments.together --qap tai30a --tsp pcb442 --seconds 2 --runs 5 --out both.jsonl
    python -m experiments.together --report both.jsonl --markdown

The closing wish of Luong's thesis (2011). Two calls of `solve_qap` or `solve_tsp` run in two
threads, one on all GPUs and one on the cores, of which one is left to the thread that feeds the
GPUs. Each call takes the settings and the implementation that suit its devices: kernels there,
native loops here. A callback ends both once one has met the target. Where there is no GPU, the
CPU's devices are split into halves, which tries the script and shows nothing else. What compiles
is called before. Seconds count from the common start of the threads.
"""

from experiments.together.script import main

__all__ = ["main"]
