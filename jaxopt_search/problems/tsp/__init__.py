"""The traveling salesman problem: distances, tours, candidates."""
