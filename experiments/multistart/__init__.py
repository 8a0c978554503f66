"""Multi-start local searches on the QAP: Table 1 and Figure 2 of Luong, Melab and Talbi.

    python -m experiments.multistart --table 1
    python -m experiments.multistart --table 1 --instances all --searches 4096 --out t.jsonl
    python -m experiments.multistart --figure 2 --instances tai50a --out figure2.jsonl
    python -m experiments.multistart --targets tai25b,kra30a --runs 30 --out targets.jsonl
    python -m experiments.multistart --report figure2.jsonl --plot figure2.png

Many searches from random starts, side by side: hill climbing by best improvement to local optima
(hc), simulated annealing (sa) and tabu search (ts). The paper does not say how many iterations it
makes: here tabu search and annealing make n * n steps (or `--steps`). One of tabu search prices all
n (n - 1) / 2 swaps; one of annealing prices 32 at random and makes the first that passes. Seconds
do not compare with the paper's, therefore; speed-ups and moves per second do.

All ratios are over one core of the same machine, measured in the same run: the same searches as
loops that numba compiles for it (`compiled_qap`, `compiled_tabu`), one search after the other.
Table 1 compares it with all that the machine has (`auto`), and with XLA on one core (`native`).
Figure 2 has the speed-up of tabu search over that core by the number of searches, on one device,
with searches side by side and moves in turn (where the paper's algorithmic level has a thread for
each search), with moves side by side and searches in turn (iteration level), both, and `auto`.
`--targets` makes runs of `solve_qap` to the best known cost, and shows the share of runs that have
reached it by a time (Hoos, Stuetzle, "Evaluating Las Vegas algorithms", 1998).

What compiles is called before. Each finished run is one line of the file, and the same command
continues where it was interrupted.
"""
