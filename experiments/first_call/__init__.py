"""What a person meets who calls a one-liner for the first time: each measurement is a new process.

    python -m experiments.first_call
    python -m experiments.first_call --cases all --seeds 10 --out first_call.jsonl
    python -m experiments.first_call --cases tsp --states cold
    python -m experiments.first_call --report first_call.jsonl

`solve_tsp` of coordinates (`eil51-xy`) and of a matrix (`eil51-matrix`), `solve_qap` (`nug12`) and
`solve_nqueens` (`queens-100`) are called with a seed and `max_seconds`, in four states:

- `cold`: nothing is compiled, and no cache is there.
- `cached`: JAX's persistent cache holds what an earlier process with the same call has compiled.
- `second_size`: the process has called the same function on an instance larger by 1.
- `second_call`: the process has made the same call with another seed.

How they are measured:

- Solvers get plain arrays, so none is told a best known cost. Coordinates are solved as Euclidean,
  the default; gaps count their lengths as TSPLIB rounds them.
- A process notes the seconds that it takes to import the library, to start the device, to make the
  call, and, of the call, to the first step. The whole process is timed from outside; in it are the
  earlier calls of the last two states.
- The overhead is the seconds of the call less the limit: what is waited for beyond the search that
  was asked for. It is negative where a search ends before its limit, as one of N-Queens does.
- Devices are as JAX shows them: one for all cores of a CPU, unless XLA_FLAGS says otherwise.

Each finished run is one line of the file; the same command continues where it was interrupted. A
run is known by its solver's version: after a change of code within a version, take another file.
"""
