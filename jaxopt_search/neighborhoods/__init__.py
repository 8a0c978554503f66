"""Which small changes a solution has, what they cost, and how they are made."""

from jaxopt_search.neighborhoods.flip import Flip
from jaxopt_search.neighborhoods.full_evaluation import FullEvaluation
from jaxopt_search.neighborhoods.guided import Guided
from jaxopt_search.neighborhoods.queen_swap import QueenSwap
from jaxopt_search.neighborhoods.relocate import Relocate
from jaxopt_search.neighborhoods.swap import DeltaSwap, Insert, InsertSegment, Swap
from jaxopt_search.neighborhoods.swap_table import SwapTable
from jaxopt_search.neighborhoods.three_opt import DoubleBridge, ThreeOpt, three_opt
from jaxopt_search.neighborhoods.two_opt import TwoOpt, two_opt
from jaxopt_search.neighborhoods.vectors import Assign, AssignOrSwap, SwapValues

__all__ = [
    "Assign",
    "AssignOrSwap",
    "DeltaSwap",
    "DoubleBridge",
    "Flip",
    "FullEvaluation",
    "Guided",
    "Insert",
    "InsertSegment",
    "QueenSwap",
    "Relocate",
    "Swap",
    "SwapTable",
    "SwapValues",
    "ThreeOpt",
    "TwoOpt",
    "three_opt",
    "two_opt",
]
