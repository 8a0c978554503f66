"""One call for one problem: everything chosen, built and run."""
