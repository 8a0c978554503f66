"""Scripts that reproduce the tables and figures of the papers, and measure.

Each folder has what belongs to one paper or kind of problem: the script and its runs, its tables,
the paper's figures (`paper.py`), the same search compiled for one core (`compiled*.py`), and the
records from which the documents are made (`results/`). What all of them share lies here.
"""
