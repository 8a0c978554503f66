"""Parallel search, parallel move: Tables 2, 3, 4 and Figure 4 of the PSPM paper.

Lam, Tsoi, Luk, "Parallel neighbourhood search on many-core platforms": simulated annealing for the
TSP with the relocation move, as PSPM (98 searches x 12 moves), SSPM (1 x 12) and PSSM (12 x 1).

    python -m experiments.pspm --table 2                    rd100, one run of each scheme
    python -m experiments.pspm --table 3 --sweeps 1         a minute or less
    python -m experiments.pspm --table 2 --instances all --runs 10 --out full.jsonl
    python -m experiments.pspm --report full.jsonl
    python -m experiments.pspm --figure 4 --report full.jsonl --plot figure4.png

`--study` makes what the paper has no table of:

- `core`: PSPM over one core of the same machine, on which numba has compiled the same annealing
  with 12 moves (SSPM) and with one;
- `exchange`: PSPM by the temperatures from one broadcast to the next;
- `descent`: one search with one move that accepts nothing worse, compared with the paper's PSSM;
  with numba, also one that accepts nothing equal.

Each finished run is one line of the file; the same command continues where it was interrupted. The
number of devices and the batch are part of a run's settings. How we differ from the paper:

- All schemes run on the same device, so the quotients of speeds in Tables 2 to 4 compare numbers
  of lanes, not a GPU with a CPU. For that, see `--study core`.
- Runs of one scheme may be made side by side ("batch"), as narrow schemes leave a device idle. They
  are independent; but seconds are the batch's, and SSES counts the moves of all its runs.
- Run times leave out compilation and the reading of results between chunks of 10 temperatures,
  which is how finely a time to the threshold is known (1% of a cooling).
- A search that has cooled down without reaching the threshold restarts from another random
  tour; its time continues.
"""
