"""How public solvers are called.

Nothing here imports JAX, so a process that measures such a package loads only what it needs.
"""
