"""The figures of Benlic and Hao, "Breakout local search for the max-cut problem" (2013).

The best cuts that the paper lists for graphs of the G-set, over 20 runs of each on one core of a
Xeon E5440 at 2.83 GHz.
"""

BEST = {
    "G1": 11624,
    "G2": 11620,
    "G3": 11622,
    "G4": 11646,
    "G5": 11631,
    "G6": 2178,
    "G7": 2006,
    "G8": 2005,
    "G9": 2054,
    "G10": 2000,
    "G11": 564,
    "G12": 556,
    "G13": 582,
    "G43": 6660,
}
"""The weight of the best cut."""
