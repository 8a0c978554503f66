# pyright: basic
"""Jaxprs as blocks of operations, and the C++ of single ones, for whoever writes more of it."""

import dataclasses
import functools
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from jaxopt_search.backends.cuda.trace import Unportable

_BITS = "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"
_TYPES = {name: f"{name}_t" for name in _BITS} | {"bool": "bool", "int32": "int"}
_TYPES |= {"uint32": "unsigned", "float32": "float", "float64": "double"}
_CALLS = "pjit", "jit", "closed_call", "core_call", "remat", "checkpoint", "custom_jvp_call"
_CALLS += ("custom_vjp_call",)

# C++ of the elements of the operands.
ELEMENTWISE = {
    **{name: f"{name}({{}}, {{}})" for name in ("add", "sub", "mul", "div", "rem", "min", "max")},
    **{f"shift_{way}": f"shift_{way}({{}}, {{}})" for way in ("left", "right_logical")},
    "shift_right_arithmetic": "shift_right_arithmetic({}, {})",
    "add_any": "add({}, {})",
    "and": "({} & {})",
    "or": "({} | {})",
    "xor": "({} ^ {})",
    "eq": "({} == {})",
    "ne": "({} != {})",
    "lt": "({} < {})",
    "le": "({} <= {})",
    "gt": "({} > {})",
    "ge": "({} >= {})",
    **{name: f"{name}({{}})" for name in ("neg", "sign", "square", "population_count", "clz")},
    **{name: f"{name}_of({{}})" for name in ("abs", "exp", "exp2", "log", "log1p", "expm1")},
    **{name: f"{name}_of({{}})" for name in ("floor", "ceil", "sin", "cos", "tanh")},
    "pow": "pow_of({}, {})",
    "sqrt": "root({})",
    "is_finite": "({0} - {0} == 0)",
    "select_n": "({0} ? {2} : {1})",
    "clamp": "clamp({}, {}, {})",
    "stop_gradient": "{}",
    "reshard": "{}",  # within `pmap`
    "device_put": "{}",  # of constants, until JAX 0.8
    "copy": "{}",
}
REDUCTIONS = {
    "reduce_min": "Min",
    "reduce_max": "Max",
    "reduce_sum": "Sum",
    "reduce_prod": "Product",
    "reduce_and": "And",
    "reduce_or": "Or",
    "reduce_xor": "Xor",
}
VIEWS = "reshape", "squeeze", "expand_dims"

_BLOCKS = {"cond": ("branches",), "while": ("cond_jaxpr", "body_jaxpr"), "scan": ("jaxpr",)}
_BLOCKS["each"] = ("jaxpr",)


@dataclasses.dataclass(eq=False)
class Var:
    """A value of a program."""

    aval: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape


class Equation(NamedTuple):
    """An operation; calls are part of the code that calls.

    Attributes:
      blocks: what a conditional or a loop does.
      origins: the equation of the jaxpr, and those that call it.
    """

    name: str
    inputs: list[Any]
    outputs: list[Var]
    params: dict[str, Any]
    blocks: list["Block"]
    origins: tuple[Any, ...]


class Block(NamedTuple):
    """Equations, and the layouts in which each value of theirs is needed."""

    inputs: list[Var]
    equations: list[Equation]
    outputs: list[Any]
    wanted: dict[Any, set[Any]]


def block_of(closed: Any) -> Block:
    """Returns a jaxpr as a block."""
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    inputs = [Var(var.aval) for var in jaxpr.invars]
    equations: list[Equation] = []
    outputs = _inline(closed, list(inputs), equations, {}, ())
    return Block(inputs, equations, outputs, defaultdict(set))


def _inline(
    closed: Any, arguments: list[Any], into: list[Equation], found: Any, callers: tuple[Any, ...]
) -> list[Any]:
    """Appends the equations of a jaxpr, and returns its results.

    Args:
      found: the results of pure operations so far, which are not computed again.
      callers: the equations that call this jaxpr, the innermost first.
    """
    jaxpr = closed.jaxpr if isinstance(closed, ClosedJaxpr) else closed
    known = dict(zip(jaxpr.invars, arguments, strict=True))
    for var, constant in zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=True):
        if np.size(constant) != 1:
            raise Unportable(f"holds a constant of shape {np.shape(constant)}, expected a leaf")
        known[var] = Literal(np.asarray(constant), var.aval)

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        name, params, inputs = eqn.primitive.name, eqn.params, [*map(read, eqn.invars)]
        if name in _CALLS:
            inner = params.get("jaxpr") or params.get("call_jaxpr") or params["fun_jaxpr"]
            outputs = _inline(inner, inputs, into, found, (eqn, *callers))
        else:
            key = _key_of(name, inputs, params)
            if outputs := found.get(key):
                known.update(zip(eqn.outvars, outputs, strict=True))
                continue
            outputs = [Var(var.aval) for var in eqn.outvars]
            if key:
                found[key] = outputs
            parts = [params[part] for part in _BLOCKS.get(name, ())]
            blocks = [*map(block_of, parts[0] if name == "cond" else parts)]
            origins = eqn, *callers
            into.append(Equation(name, inputs, outputs, params, blocks, origins))
        known.update(zip(eqn.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _key_of(name: str, inputs: list[Any], params: dict[str, Any]) -> Any:
    """Returns what equal results have in common, or None if an operation is not elementwise."""
    if name not in ELEMENTWISE and name not in (*UNLIKE, "iota", "broadcast_in_dim"):
        return None
    atoms = (
        (str(atom.aval), np.asarray(atom.val).tobytes()) if isinstance(atom, Literal) else atom
        for atom in inputs
    )
    return name, *atoms, str(params)


def literal(value: Any, dtype: Any) -> str:
    """Returns C++ of a number."""
    value = np.asarray(value, dtype).reshape(())[()]
    if dtype == np.bool_:
        return "true" if value else "false"
    if jnp.issubdtype(dtype, jnp.floating):
        is_single = np.dtype(dtype).itemsize == 4
        if np.isfinite(value):
            return float(value).hex() + ("f" if is_single else "")
        bits = value.view(np.uint32 if is_single else np.uint64)
        return f"bits_of<{_TYPES[str(dtype)]}>({bits:#x}{'u' if is_single else 'ull'})"
    if np.dtype(dtype).itemsize == 8:
        return f"(({_TYPES[str(dtype)]}){int(value) & (2**64 - 1):#x}ull)"
    if jnp.issubdtype(dtype, jnp.unsignedinteger):
        return f"(({_TYPES[str(dtype)]}){int(value)}u)"
    return f"(({_TYPES[str(dtype)]}){int(value)})" if int(value) > -(2**31) else "(-2147483647 - 1)"


def type_of(dtype: Any) -> str:
    """Returns the C++ of a dtype."""
    try:
        return _TYPES[str(np.dtype(dtype))]
    except KeyError:
        raise Unportable(f"has values of dtype {dtype}, which a fused kernel cannot") from None


def _conversion(equation: Equation) -> str:
    old, new = equation.inputs[0].aval.dtype, equation.outputs[0].aval.dtype
    if new == np.bool_:
        return "({} != 0)"
    if jnp.issubdtype(old, jnp.floating) and jnp.issubdtype(new, jnp.integer):
        return f"whole<{type_of(new)}>({{}})"
    return f"({type_of(new)})({{}})"


def _power(equation: Equation) -> str:
    number = equation.params["y"]
    if not 0 < number <= 8:
        raise Unportable(f"uses integer_pow with exponent {number}")
    return functools.reduce(lambda text, _: f"mul({text}, {{0}})", range(number - 1), "{0}")


UNLIKE: dict[str, Callable[[Equation], str]] = {
    "convert_element_type": _conversion,
    "bitcast_convert_type": lambda eqn: f"bits_of<{type_of(eqn.outputs[0].aval.dtype)}>({{}})",
    "not": lambda eqn: "(!{})" if eqn.outputs[0].aval.dtype == np.bool_ else "(~{})",
    "integer_pow": _power,
}
