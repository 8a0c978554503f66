"""The best published cuts of graphs of the G-set.

Those of up to 3000 vertices are of Benlic and Hao, "Breakout local search for the max-cut problem"
(2013), over 20 runs of each on one core of a Xeon E5440 at 2.83 GHz. That of G63
is of arXiv:2510.21105. Of the other larger ones these are goals whose source was not found, and
that of G60 is 14188 elsewhere. Breakout local search has 10294, 14176, 26997, 9541, 6998, 9926 and
14030 there.
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
    "G14": 3064,
    "G15": 3050,
    "G16": 3052,
    "G17": 3047,
    "G22": 13359,
    "G23": 13344,
    "G24": 13337,
    "G32": 1410,
    "G33": 1382,
    "G34": 1384,
    "G43": 6660,
    "G48": 6000,
    "G49": 6000,
    "G50": 5880,
    "G51": 3848,
    "G52": 3851,
    "G53": 3850,
    "G54": 3852,
    "G55": 10299,
    "G60": 14190,
    "G63": 27047,
    "G70": 9591,
    "G72": 7008,
    "G77": 9940,
    "G81": 14060,
}
"""The weight of the best cut."""
