"""Successor states by local heuristics: Tables 1 and 2 of Köster, Groß and Krüger's FANG, and more.

    python -m experiments.fang --table 1
    python -m experiments.fang --table 1 --ways native,compiled --out fang.jsonl
    python -m experiments.fang --table 2 --ways cuda,xla --out fang.jsonl
    python -m experiments.fang --report fang.jsonl --table 2 --ways cuda --markdown

Points on a grid are to move towards goals; of each state all points move once, one after the other
(`heuristic.py`). Seconds are the time of a call, from its start until the successors have replaced
the states. The first call, which compiles, is left out. On a GPU there is also the time of one
execution among many in one program, without calls in between.

Ways to run are three of the library's, `cuda`, `xla` and `native`, and `compiled`: plain loops
compiled for one core (`compiled.py`). `native` and `compiled` run on a core of the CPU, also where
there is a GPU.

Table 1: by states, variables and possibilities, compared with the paper's four machines.
Table 2: by the load, which is how many distances are computed for each possibility.
"""
