"""Problems whose variables have a finite domain each, and problems of one's own.

`coloring.py` and `maxcut.py` compare with searches compiled for one core; `exam_timetable.py` and
`graph_bisection.py` are problems that the library does not know.
"""
