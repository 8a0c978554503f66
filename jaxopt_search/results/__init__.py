"""What a run returns: results that can be read and drawn."""

from jaxopt_search.results.types import (
    History,
    Hit,
    QueensResult,
    Record,
    Result,
    StackedResult,
    Status,
)

__all__ = ["History", "Hit", "QueensResult", "Record", "Result", "StackedResult", "Status"]
