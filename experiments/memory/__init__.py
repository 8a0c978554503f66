"""What runs take of a device's memory: `memory_estimate` compared with what is measured.

    python -m experiments.memory
    python -m experiments.memory --cases all --out memory.jsonl
    python -m experiments.memory --report memory.jsonl

Each case is a problem, a search and, with some, an exchange. A new process makes a few chunks of
steps of it with `solve`, which allocates as a long run does.

- On a GPU the measured bytes are `peak_bytes_in_use` of the device, from the start of the process
  on, with XLA_PYTHON_CLIENT_PREALLOCATE=false. The estimate is made afterwards.
- On a CPU they are the rise of the process's resident memory to its peak. The programs are compiled
  before, since compiling takes memory of the host, too, and MALLOC_MMAP_THRESHOLD_=65536 lets the C
  library give back what is freed. What the host fetches counts as well.
- Runs are large enough that what JAX, XLA and the kernels' code take does not matter; an allowance
  of 16 MiB is made for that.

Each finished run is one line of the file; the same command continues where it was interrupted.
"""
