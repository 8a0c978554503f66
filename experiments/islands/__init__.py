"""Islands of a genetic algorithm on the QAP: Tables I to III of Tsutsui and Fujimoto and more.

    python -m experiments.qap_islands --table 1 --instances tai25b --runs 5
    python -m experiments.qap_islands --table 2 --islands 1,30,60 --runs 30 --out islands.jsonl
    python -m experiments.qap_islands --table 3 --instances all --out one_core.jsonl
    python -m experiments.qap_islands --table 4 --islands 132,264 --devices 1,2 --out devices.jsonl
    python -m experiments.qap_islands --table 5 --islands 30 --out variants.jsonl
    python -m experiments.qap_islands --report islands.jsonl,more.jsonl --table 2 --markdown
    python -m experiments.qap_islands --report islands.jsonl --table 2 --figure 6 --plot fit.png

Each run goes on until one island has found an acceptable assignment, or to a limit. Seconds are
those from the first populations, which lie on the devices, to the end, without compilation. An
island has 128 individuals and starts anew where 60% of it are equally good, as in the paper.
Matrices are read as the paper's equation 1 has them (`paper.FLOW`); `--encoding file` takes
the first of each file as the flow. `--mutation 0.1` is the paper's rate; docs/islands.md says why
the default is another. `--local-steps` makes the algorithm memetic.

Runs of one island are made side by side, as many as there are seeds: they exchange nothing, and a
GPU takes no longer for one island on each multiprocessor than for a single one. Every 50
generations, beyond 5000 every hundredth of those made, it is looked which of them are done, and
their seconds are those until then.

Table 1: one island, without and with starting anew.
Table 2: p islands on all devices; beside the mean time T its gain over one island, and M(p): the
time that a gamma distribution predicts, fitted to the runs of one island by least squares.
Table 3: as many islands as the most in `--islands` on all devices, beside one population on one
core of the CPU, of 128 (the paper's Model II), and of that size among `--sizes` which takes the
shortest mean time (Model I). The core runs a compiled loop (`compiled.py`), which makes
a thousand generations, so that it is known how long one takes. How many a population makes is
counted by runs on the first device, or by runs of the loop on all cores (`--only cores`).
Table 4: islands spread over so many devices; beside T the gain over the fewest devices, with as
many islands in all, and with as many on each, where M(p) predicts it; and how many runs have the
same first finisher, at the same generation and cost, as on the fewest.
Table 5: islands that differ from those of Table 2 in one thing: the rate of mutation, crossover,
what is kept where one starts anew, migration, or the encoding.
Table 6: how far distributions are from the times of one island.
Table 7: generations of one island by encoding.
Table 8: how many runs of one island without restarts find it, by the rate of mutation.
Figures 5 and 6, with `--plot`: the times of one island, and their distribution with its fit.
"""

from experiments.islands.script import main

__all__ = ["main"]
