"""What a shell runs: `jaxopt-search`, or `python -m jaxopt_search`."""
