"""The figures of Lam, Tsoi, Luk, "Parallel neighbourhood search on many-core platforms".

Tables 2, 3 and 4 as printed. SSES in 1e6 moves/s, SEC in percent, TC in 0.01 solutions/s. PSPM ran
on an NVIDIA Tesla C2050; SSPM and PSSM on 12 cores of two Intel Xeon X5650.
"""

from typing import NamedTuple


class Speed(NamedTuple):
    """A row of Table 2; each of the first three is (SSES, SEC)."""

    sspm: tuple[float, float]
    pssm: tuple[float, float]
    pspm: tuple[float, float]
    speedup_over_sspm: float
    speedup_over_pssm: float


class Effectiveness(NamedTuple):
    """A row of Table 3. The paper has no TC of PSSM, which did not reach the thresholds."""

    tc_sspm: float
    tc_pspm: float
    tc_speedup: float
    sec_sspm: float
    sec_pssm: float
    sec_pspm: float
    improvement_over_sspm: float
    improvement_over_pssm: float


class Scalability(NamedTuple):
    """A row of Table 4: averages over the 20 instances; SSPM and PSPM are (SSES, SEC)."""

    sspm: tuple[float, float]
    pspm: tuple[float, float]
    speedup: float


TABLE_2 = {
    "rd100": Speed((4.6, 2.4), (19.4, 31.2), (456.8, 0.14), 99.7, 23.6),
    "eil101": Speed((4.3, 3.8), (19.6, 19.4), (447.8, 0.49), 105.1, 22.9),
    "bier127": Speed((3.6, 4.0), (17.6, 23.4), (466.4, 0.92), 130.0, 26.4),
    "ch150": Speed((5.5, 2.9), (16.2, 35.9), (459.4, 1.19), 83.3, 28.3),
    "kroA150": Speed((4.2, 5.1), (16.1, 39.5), (461.5, 1.08), 109.2, 28.6),
    "pr152": Speed((4.6, 1.9), (16.1, 75.8), (466.6, 0.17), 102.2, 29.0),
    "u159": Speed((4.6, 4.3), (15.4, 40.7), (463.8, 1.00), 99.9, 30.1),
    "rat195": Speed((4.3, 6.2), (13.9, 37.0), (446.2, 2.50), 104.5, 32.1),
    "ts225": Speed((5.6, 5.5), (11.9, 28.4), (468.7, 1.06), 83.5, 39.4),
    "tsp225": Speed((5.4, 4.6), (12.1, 35.2), (447.9, 2.37), 82.2, 36.9),
    "gil262": Speed((4.0, 6.1), (11.3, 50.7), (447.0, 2.19), 110.4, 39.7),
    "pr264": Speed((4.8, 11.2), (11.3, 116.0), (462.1, 4.20), 96.7, 40.7),
    "a280": Speed((4.6, 5.9), (11.1, 53.2), (443.9, 2.75), 95.6, 40.0),
    "pr299": Speed((5.6, 5.7), (10.7, 48.7), (463.2, 1.81), 82.2, 43.5),
    "lin318": Speed((4.5, 9.1), (10.4, 63.6), (465.8, 3.63), 103.3, 44.7),
    "rd400": Speed((4.8, 7.5), (9.1, 40.5), (453.0, 3.62), 93.9, 49.9),
    "fl417": Speed((4.4, 6.6), (8.8, 116.2), (449.6, 1.41), 102.7, 51.3),
    "pr439": Speed((4.7, 10.5), (8.6, 72.1), (462.2, 5.16), 98.8, 53.9),
    "pcb442": Speed((4.5, 7.5), (8.4, 43.5), (458.2, 3.81), 101.0, 54.3),
    "d493": Speed((4.7, 6.7), (7.7, 47.0), (452.0, 4.30), 96.7, 58.9),
}

TABLE_3 = {
    "rd100": Effectiveness(0.99, 48.31, 48.8, 3.5, 23.3, 0.3, 3.2, 23.0),
    "eil101": Effectiveness(4.57, 35.34, 7.7, 3.8, 17.9, 0.5, 3.3, 17.4),
    "bier127": Effectiveness(8.85, 66.67, 7.5, 7.4, 22.2, 1.5, 5.9, 20.7),
    "ch150": Effectiveness(0.45, 32.36, 72.3, 13.9, 35.3, 0.8, 13.1, 34.5),
    "kroA150": Effectiveness(1.97, 43.67, 22.1, 7.5, 35.6, 0.9, 6.6, 34.7),
    "pr152": Effectiveness(0.26, 29.85, 115.4, 1.9, 64.5, 0.6, 1.3, 63.9),
    "u159": Effectiveness(0.50, 37.31, 75.1, 4.4, 35.3, 1.2, 3.2, 34.0),
    "rat195": Effectiveness(1.69, 21.98, 13.0, 59.7, 36.8, 1.6, 58.1, 35.2),
    "ts225": Effectiveness(2.27, 44.84, 19.7, 57.3, 30.4, 1.1, 56.2, 29.3),
    "tsp225": Effectiveness(0.09, 19.80, 223.2, 42.0, 33.9, 2.8, 39.2, 31.1),
    "gil262": Effectiveness(1.58, 16.13, 10.2, 54.5, 45.6, 2.8, 51.7, 42.8),
    "pr264": Effectiveness(0.93, 24.04, 25.9, 41.4, 104.6, 6.1, 35.3, 98.5),
    "a280": Effectiveness(1.01, 15.13, 15.0, 86.4, 56.9, 2.5, 83.9, 54.4),
    "pr299": Effectiveness(0.31, 16.26, 53.0, 7.1, 49.2, 2.7, 4.3, 46.5),
    "lin318": Effectiveness(0.69, 18.52, 26.7, 15.1, 64.0, 4.1, 11.0, 59.8),
    "rd400": Effectiveness(1.21, 12.14, 10.0, 22.9, 54.9, 4.2, 18.7, 50.7),
    "fl417": Effectiveness(0.93, 9.43, 10.1, 6.9, 112.0, 1.8, 5.0, 110.2),
    "pr439": Effectiveness(2.66, 16.42, 6.2, 30.8, 77.6, 5.0, 25.8, 72.6),
    "pcb442": Effectiveness(1.39, 13.02, 9.4, 8.9, 41.8, 4.2, 4.7, 37.5),
    "d493": Effectiveness(0.49, 9.09, 18.4, 7.2, 46.7, 4.4, 2.8, 42.3),
}

# Moves per search (Pm on the CPU, TPB on the GPU) to the averages over all instances.
TABLE_4 = {
    4: Scalability((2.9, 9.0), (154.8, 2.2), 55.2),
    8: Scalability((3.8, 6.5), (305.5, 2.1), 82.1),
    12: Scalability((4.7, 5.9), (457.1, 2.2), 99.0),
    24: Scalability((5.4, 4.2), (756.8, 1.5), 142.6),
    32: Scalability((2.5, 4.0), (909.7, 1.4), 369.5),
    48: Scalability((2.0, 3.6), (652.2, 1.1), 320.6),
}
