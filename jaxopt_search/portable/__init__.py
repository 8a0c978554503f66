"""What runs inside kernels too: buffers, random words, tables, counts, floats."""
