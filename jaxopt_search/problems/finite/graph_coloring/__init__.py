"""How can a graph be colored so that few neighbors have the same color?"""
