"""What children two solutions have: the operators of `genetic` by name, and edge assembly."""
