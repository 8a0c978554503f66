"""Scripts that reproduce the tables and figures of the papers, and measure; one file per paper."""
