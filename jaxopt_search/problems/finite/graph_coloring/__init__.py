"""How a graph is colored so that few neighbors have the same color."""
