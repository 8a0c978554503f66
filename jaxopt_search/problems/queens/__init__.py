"""How n queens stand without attacking one another, and which placements are the same."""
