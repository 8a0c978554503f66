"""Islands of a genetic algorithm on the QAP: Tables I to III of Tsutsui and Fujimoto and more.

    python -m experiments.islands --table 1 --instances tai25b --runs 5
    python -m experiments.islands --table 2 --islands 1,30,60 --runs 30 --out islands.jsonl
    python -m experiments.islands --table 3 --instances all --out one_core.jsonl
    python -m experiments.islands --study devices --islands 132,264 --out devices.jsonl
    python -m experiments.islands --study variants --islands 30 --out variants.jsonl
    python -m experiments.islands --report islands.jsonl,more.jsonl --table 2 --markdown
    python -m experiments.islands --report islands.jsonl --table 2 --figure 6 --plot fit.png

Each run ends when one island has found an acceptable assignment, or at a limit. Seconds are
counted from the first populations, which lie on the devices, to the end, without compilation. An
island has 128 individuals and restarts when 60% of them are equally good, as in the paper.
Matrices are read as the paper's equation 1 has them (`paper.FLOW`); `--encoding file` takes
the first of each file as the flow. The paper's rate of mutation is 0.1; docs/islands.md says why
the default is another. `--local-steps` makes the algorithm memetic.

Runs of one island are made side by side, as many as there are seeds: they exchange nothing, and a
GPU takes no longer for one island on each multiprocessor than for a single one. Every 50
generations, and after 5000 whenever another hundredth has been made, the script looks which of
them are done; that is when their seconds end.

Table 1: one island, without and with restarts.
Table 2: p islands on all devices; next to the mean time T its gain over one island, and M(p): the
time that a gamma distribution predicts, fitted to the runs of one island by least squares.
Table 3: as many islands as the most in `--islands` on all devices, compared with one population on
one core of the CPU, of 128 (the paper's Model II), and of whichever of `--sizes` has the shortest
mean time (Model I). The core runs a compiled loop (`compiled.py`), which makes
a thousand generations, so that it is known how long one takes. How many a population makes is
counted by runs on the first device, or by runs of the loop to their ends (`--only cores`).

`--study` makes what the paper has no table of:

- `devices`: islands spread over several devices; next to T the gain over the fewest devices, with
  as many islands in all, and with as many on each, where M(p) predicts it; and how many runs have
  the same first finisher, at the same generation and cost, as on the fewest.
- `variants`: islands that differ from Table 2's in one thing: the rate of mutation, the crossover,
  what is kept at a restart, migration, or the encoding.
- `distributions`: how far distributions are from the times of one island.
- `encodings`: generations of one island by encoding.
- `rates`: how many runs of one island without restarts find it, by the rate of mutation.

Figures 5 and 6, with `--plot`: the times of one island, and their distribution with its fit.
"""
