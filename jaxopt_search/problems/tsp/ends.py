"""TSP: where the tours and paths of the user's begin and end."""

from typing import Any, NamedTuple

import numpy as np

from jaxopt_search.checks import check_permutation


class Ends(NamedTuple):
    """Where solutions of the user's begin and end; on the device, all are closed tours.

    Attributes:
      start: the first city; None for any.
      end: the last city of a path, None for any.
      is_path: whether it is one; else `end` does not count.
      is_symmetric: whether a path costs the same both ways.
      coords: [n, 2], for pictures; None for those of the instance, and for none of paths.
    """

    start: int | None
    end: int | None = None
    is_path: bool = True
    is_symmetric: bool = True
    coords: np.ndarray | None = None

    def __call__(self, tours: np.ndarray) -> np.ndarray:
        """Returns the user's solutions, of [..., n] tours or [..., n + 1] that stand for paths."""
        n = tours.shape[-1]
        if not self.is_path:
            return tours if self.start is None else _turned(tours, self.start)
        paths = _turned(tours, n - 1)[..., 1:]
        if self.is_symmetric:
            is_back = (paths[..., -1] == self.start) | (paths[..., 0] == self.end)
            paths = np.where(is_back[..., None], paths[..., ::-1], paths)
        rows = paths.reshape(-1, n - 1)
        for row in np.flatnonzero(~self._fit(rows)).tolist():
            rows[row] = self._joined(rows[row])
        return rows.reshape(paths.shape)

    def _fit(self, paths: np.ndarray) -> np.ndarray:
        """Returns which paths have the given ends."""
        is_first = True if self.start is None else paths[:, 0] == self.start
        is_last = True if self.end is None else paths[:, -1] == self.end
        return np.broadcast_to(is_first & is_last, len(paths))

    def _joined(self, path: np.ndarray) -> np.ndarray:
        """Returns a path with the given ends: one with others is closed, and opened there."""
        if self.start is None:
            return np.roll(_turned(path, self.end), -1)
        path = _turned(path, self.start)
        if self.end is None:
            return path
        at = int(np.flatnonzero(path == self.end)[0])
        behind = path[at + 1 :]
        behind = behind[::-1] if self.is_symmetric else behind
        return np.concatenate([path[:1], behind, path[1 : at + 1]])

    def check(self, n: int, values: Any, name: str) -> np.ndarray:
        """Returns the tour on the device, [n + 1], of a path of the user's, or checks one."""
        if np.shape(values) == (n + 1,):
            return check_permutation(values, n + 1, name)
        return np.append(check_permutation(values, n, name), np.int32(n))


def _turned(tours: np.ndarray, first: int | None) -> np.ndarray:
    """Returns tours, [..., n], from a city on."""
    at = np.argmax(tours == first, axis=-1)[..., None]
    return np.take_along_axis(tours, (at + np.arange(tours.shape[-1])) % tours.shape[-1], axis=-1)
