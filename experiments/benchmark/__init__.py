"""How many moves per second annealing prices: the speed of PSPM on this machine.

    python -m experiments.benchmark
    python -m experiments.benchmark --cities 100,442 --searches 98,1024 --moves 12,32 --devices all
    python -m experiments.benchmark --neighborhood two_opt --moves 4,8,16 --out speed.jsonl
    python -m experiments.benchmark --report speed.jsonl

Uniform random instances, relocation or 2-opt and Or-opt moves, the PSPM paper's cooling and
broadcast. Compilation is timed apart; then each repetition continues from where the one before
ended. Making a 2-opt move takes longer than pricing it, so with 2-opt the speed rises as it gets
colder. The paper's 12-core CPU made 4.7e6 (SSPM) and 1.3e7 moves/s (PSSM), its GPU 4.6e8 to 9.1e8
(PSPM).
"""
