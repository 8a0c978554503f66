"""N-Queens: counting attacks in nine ways, and finding valid placements.

    python -m experiments.queens --figure 4
    python -m experiments.queens --figure 6 --sizes 1000,100000,1048576 --out nqueens.jsonl
    python -m experiments.queens --figure 2 --threads 1,2,4,8,16
    python -m experiments.queens --table 3
    python -m experiments.queens --anneal 1000 --schemes coarse,numba_histogram --runs 3
    python -m experiments.queens --solve 3000 --runs 30
    python -m experiments.queens --set 1000 --solutions 100000
    python -m experiments.queens --report nqueens.jsonl --figure 4

After "Parallel schemes of the N-Queens fitness function on CPU and GPU". Seconds are medians of
several calls after one that warms up; placements lie on the device. What would take longer than
`--limit` seconds, judging by a smaller size, is left out.

`serial`, the schemes on threads and the compiled loops run on the CPU also where JAX has a GPU; for
all on the CPU set JAX_PLATFORMS=cpu. Each record says where it was made. `numba` is the paper's
double loop, compiled for one core (numba, from the extra `peers`), and what all speed-ups are over;
`numba_histogram` the same in O(n).

Figure 1: the share of annealing's time that evaluation takes: what a step is longer by than the
same step with an evaluation that does nothing, on the same device. A step evaluates twice, the
second time when it is made; compiled loops once.
Figures 2 and 3: the speed of the schemes on threads by their number, and the best number by size.
Figures 4 and 5: all schemes side by side, and their speed-ups.
Figure 6: `coarse` on random placements and on valid ones.
Figure 7: annealing with full evaluation, and with deltas in O(1), a step.
Tables 3 and 4: `subtasks` by their threshold, up to and from 100,000 queens.
`--anneal`: annealing with full evaluation by `--schemes`, one move a step, to a valid placement
(section 4), at most `--limit` seconds; `--searches` of them side by side.
`--solve`: annealing with deltas, and min-conflicts, to a valid placement; seconds from random
starts that lie on the device.
`--set`: `solve_nqueens` for many placements, or for one; the second of two calls.
"""
