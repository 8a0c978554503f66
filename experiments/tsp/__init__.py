"""`js.solve_tsp`: how good its tours are (`quality.py`), and many small instances (`many.py`)."""
