"""Which closed tour through all cities is shortest: the traveling salesman problem."""
