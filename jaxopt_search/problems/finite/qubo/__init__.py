"""Which variables are 1 for the least quadratic cost, and where a graph is cut best."""
