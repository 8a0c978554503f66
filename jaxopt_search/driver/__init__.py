"""How the host runs searches to an end: one call of `solve`."""
