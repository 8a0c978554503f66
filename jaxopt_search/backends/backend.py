# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
"""What portable code is traced for: the one hidden state of the library.

The same portable code means different operations under XLA, in a kernel, and in a loop on a CPU.
`memory` has to know which, and to hand that on as an argument would put it into every function that
a user writes. So two context variables hold it:

- the backend: where one search, or one state, runs by itself; None where XLA runs all of them side
  by side;
- whether the lanes of a search take turns: moves one after the other instead of all at once.

What runs portable code sets them, by `one_search` and `in_turns`, around the call that traces it;
nothing else writes them, and they are reset when that call ends. What is compiled keeps what it was
traced for. JAX does not see them: a function that it caches, such as one under `jax.jit`, must not
be traced once for one backend and used for another.
"""

import contextlib
import contextvars
from collections.abc import Callable, Generator
from typing import Any, Literal, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

Tree = TypeVar("Tree")
Backend: TypeAlias = Literal["native", "interpreter", "gpu"]
"""Where a search runs by itself: on a CPU, or in a kernel that is interpreted or runs on a GPU."""

_backend: contextvars.ContextVar[Backend | None] = contextvars.ContextVar("backend", default=None)
_takes_turns: contextvars.ContextVar[bool] = contextvars.ContextVar("takes_turns", default=False)


@contextlib.contextmanager
def one_search(backend: Backend) -> Generator[None]:
    """Declares that portable code traced within handles one search by itself.

    Example:
      >>> with one_search("native"):
      ...     is_alone(), is_native(), is_in_kernel()
      (True, True, False)
    """
    token = _backend.set(backend)
    try:
        yield
    finally:
        _backend.reset(token)


@contextlib.contextmanager
def in_turns() -> Generator[None]:
    """Declares that the lanes of a search take turns: searches are what runs in parallel.

    Example:
      >>> with in_turns():
      ...     during = takes_turns()
      >>> during, takes_turns()
      (True, False)
    """
    token = _takes_turns.set(True)
    try:
        yield
    finally:
        _takes_turns.reset(token)


def takes_turns() -> bool:
    """Returns whether the lanes of a search take turns.

    Example:
      >>> takes_turns()
      False
    """
    return _takes_turns.get()


def is_in_kernel() -> bool:
    """Returns whether a kernel is traced, interpreted or for a GPU.

    Example:
      >>> with one_search("interpreter"):
      ...     is_in_kernel()
      True
      >>> is_in_kernel()
      False
    """
    return _backend.get() in ("interpreter", "gpu")


def is_on_gpu() -> bool:
    """Returns whether a kernel for a GPU is traced."""
    return _backend.get() == "gpu"


def is_native() -> bool:
    """Returns whether a search runs by itself on a CPU, compiled as one function.

    Example:
      >>> with one_search("native"):
      ...     is_native()
      True
      >>> is_native()
      False
    """
    return _backend.get() == "native"


def is_alone() -> bool:
    """Returns whether portable code that is traced handles one search, or one state, by itself.

    Example:
      >>> with one_search("gpu"):
      ...     is_alone()
      True
      >>> is_alone()
      False
    """
    return _backend.get() is not None


def computed_once(tree: Tree) -> Tree:
    """Returns arrays as they are, but XLA on a GPU computes them no second time; portable.

    Else it does so in each of the kernels that use them, which take the longer to compile.

    Args:
      tree: a pytree of arrays, any shapes.

    Example:
      >>> import jax.numpy as jnp
      >>> computed_once(jnp.arange(3)).tolist()
      [0, 1, 2]
    """
    return tree if is_alone() else lax.optimization_barrier(tree)


def compiled_apart(fn: Callable[..., Tree], *arguments: Any) -> Tree:
    """Returns `fn(*arguments)`, to which a kernel's compiler need not relate all else; portable.

    Triton follows each access of memory to all that it depends on, and to all that depends on it,
    as far as a loop reaches. So a large part of a step is a loop of its own here, which is made
    once; LLVM sees that, and drops the loop.

    Args:
      fn: returns a pytree of arrays, any shapes; it is traced twice.

    Example:
      >>> int(compiled_apart(lambda a, b: a + b, jnp.int32(2), jnp.int32(3)))
      5
    """
    if not is_on_gpu():
        return fn(*arguments)
    from jax.experimental import pallas as pl

    once = (pl.program_id(0) | 1) & 1  # LLVM computes it, MLIR does not
    nothing = jax.tree.map(
        lambda one: jnp.zeros(one.shape, one.dtype), jax.eval_shape(fn, *arguments)
    )
    return lax.fori_loop(0, once, lambda _, __: fn(*arguments), nothing)
