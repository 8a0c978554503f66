"""Forked processes: JAX's threads are gone there, and what waits for them never ends.

JAX itself warns only at the fork, in the parent.
"""

import os
import sys

_is_orphan = False


def _in_child() -> None:
    """Notes in a forked child whether JAX had started in its parent."""
    global _is_orphan
    bridge = sys.modules.get("jax._src.xla_bridge")  # asking JAX by its public names starts it
    _is_orphan |= bool(getattr(bridge, "_backends", None))


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_in_child)


def refuse_orphans() -> None:
    """Refuses to work where JAX would hang.

    Raises:
      RuntimeError: in a process that was forked from one in which JAX had started.
    """
    if _is_orphan:
        raise RuntimeError(
            "this process was forked from one in which JAX had started, and would hang; start it"
            " with multiprocessing.get_context('spawn')"
        )
