"""The quadratic assignment problem."""
