"""Which agent does which job, within capacities, at the least cost."""
