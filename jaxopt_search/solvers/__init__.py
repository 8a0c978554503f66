"""How one call solves one problem: everything is chosen, built and run."""
