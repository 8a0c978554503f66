"""How steps are run and searches kept: the compiled loop, its state, its devices."""
