"""Which binary variables are 1 for the least quadratic cost; where is a graph cut best?"""
