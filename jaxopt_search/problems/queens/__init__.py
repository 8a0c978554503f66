"""The N-Queens problem: placements, their symmetry, and their attacking pairs."""
