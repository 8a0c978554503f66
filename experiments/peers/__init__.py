"""Time to a good solution, compared with public solvers in one run on the same machine.

    python -m experiments.peers --problem tsp
    python -m experiments.peers --problem qap --instances tai30a,tai30b --seconds 5
    python -m experiments.peers --problem qubo --instances G1,G22,p3000.1 --seconds 5
    python -m experiments.peers --problem nqueens --instances 1000,1000x500 --seconds 10
    python -m experiments.peers --instances rd100,lin318,pcb442 --seeds 5 --seconds 10 --out p.jsonl

For each instance, solver and seed: the seconds until a solution is at most 1%, 0.1% and 0% above
the best known one. How they are measured:

- A solver is run with growing limits, each from scratch, until a run finds the best known cost or
  the last limit is used. The time to a level is the shortest at which any of these runs reached it:
  the moment within the run, for a solver that tells its course; for the others, the seconds of the
  whole call. Earlier runs that failed are not added.
- A table holds the median over the seeds; a run that did not reach the level counts as infinite.
  Not all peers take a seed: theirs are repetitions.
- Seconds are wall-clock time of the call. Reading the instance, and bringing the distances into the
  form that a peer takes, are not counted. Costs are recomputed from the solutions, exactly.
- What compiles is timed warm. What a first call takes more is a column of its own: the time of a
  call with the shortest limit, first seed only, after all that was compiled is forgotten.

Each finished run is one line of the file; the same command continues where it was interrupted. A
run is known by its solver's version: after a change of code within a version, take another file.
Peers that are not installed are left out. What is particular to a problem is in `tsp.py`, `qap.py`,
`qubo.py` and `queens.py`; of queens, costs count the placements that are missing.
"""
