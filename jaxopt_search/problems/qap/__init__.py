"""Which facility goes to which location: the quadratic assignment problem."""
