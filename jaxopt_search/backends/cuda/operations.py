# pyright: basic
"""Jaxprs as blocks of operations, and the C++ of single ones, for whoever writes more of it."""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import ClosedJaxpr, Literal

from jaxopt_search.backends.cuda.trace import Unportable

_BITS = "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"
_TYPES = {name: f"{name}_t" for name in _BITS} | {"bool": "bool", "int32": "int"}
_TYPES |= {"uint32": "unsigned", "float32": "float", "float64": "double"}
_CALLS = "pjit", "jit", "closed_call", "core_call", "remat", "checkpoint", "custom_jvp_call"
_CALLS += ("custom_vjp_call",)


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


def _conversion(equation: Any) -> str:
    old, new = equation.inputs[0].aval.dtype, equation.outputs[0].aval.dtype
    if new == np.bool_:
        return "({} != 0)"
    if jnp.issubdtype(old, jnp.floating) and jnp.issubdtype(new, jnp.integer):
        return f"whole<{type_of(new)}>({{}})"
    return f"({type_of(new)})({{}})"


def _bits(equation: Any) -> str:
    old, new = equation.inputs[0].aval, equation.outputs[0].aval
    if old.shape != new.shape:
        raise Unportable(f"has the bits of {old.dtype} as {new.dtype}, expected as many")
    return f"bits_of<{type_of(new.dtype)}>({{}})"


def _choice(equation: Any) -> str:
    last = len(equation.inputs) - 1
    if last == 2:
        return "({0} ? {2} : {1})"
    tests = (f"{{0}} == {k} ? {{{k + 1}}}" for k in range(last - 1))
    return f"({' : '.join(tests)} : {{{last}}})"


ELEMENTWISE: dict[str, str | Callable[[Any], str]] = {
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
    "select_n": _choice,
    "clamp": "clamp({}, {}, {})",
    "stop_gradient": "{}",
    "reshard": "{}",  # within `pmap`
    "device_put": "{}",  # of constants, until JAX 0.8
    "copy": "{}",
    "convert_element_type": _conversion,
    "bitcast_convert_type": _bits,
    "round": lambda eqn: "rint_of({})" if eqn.params["rounding_method"] else "round_of({})",
    "not": lambda eqn: "(!{})" if eqn.outputs[0].aval.dtype == np.bool_ else "(~{})",
}
"""C++ of the elements of the operands; some as a function of the equation."""

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


def _place_of(best: Callable[..., jax.Array], x: jax.Array, *, axes: Any, index_dtype: Any) -> Any:
    """Returns where the best along an axis stands, the first of equals."""
    (axis,), places = axes, lax.broadcasted_iota(index_dtype, x.shape, axes[0])
    is_best = (x == best(x, axis, keepdims=True)) | (x != x)  # NaN wins
    return jnp.min(jnp.where(is_best, places, x.shape[axis]), axis)


def _product(a: jax.Array, b: jax.Array, *, dimension_numbers: Any, **params: Any) -> jax.Array:
    """Returns the sums of products; axes of both, of the first, then of the second remain."""
    (ours, theirs), (of_a, of_b) = dimension_numbers
    free = [axis for axis in range(a.ndim) if axis not in (*ours, *of_a)]
    other = [axis for axis in range(b.ndim) if axis not in (*theirs, *of_b)]
    kind, last = params["preferred_element_type"] or a.dtype, len(of_a) + len(free) + len(other)
    a = jnp.transpose(a, (*of_a, *free, *ours)).astype(kind)
    b = jnp.transpose(b, (*of_b, *other, *theirs)).astype(kind)
    middle = range(len(of_a) + len(free), last)
    terms = jnp.expand_dims(a, middle) * jnp.expand_dims(b, range(len(of_b), middle.start))
    return jnp.sum(terms, range(last, terms.ndim), dtype=kind)


def _padded(x: jax.Array, value: jax.Array, *, padding_config: Any) -> jax.Array:
    for axis, (low, high, between) in enumerate(padding_config):
        if between:
            raise Unportable("uses pad between entries")
        if low or high:
            sizes = ((*x.shape[:axis], max(n, 0), *x.shape[axis + 1 :]) for n in (low, high))
            before, behind = (jnp.full(size, value) for size in sizes)
            x = jnp.concatenate([before, x, behind], axis)
            x = lax.slice_in_dim(x, max(-low, 0), x.shape[axis] - max(-high, 0), axis=axis)
    return x


def _power(x: jax.Array, *, y: int) -> jax.Array:
    """Returns the product in the order in which JAX multiplies."""
    number, product = abs(y), None
    while number:
        if number & 1:
            product = x if product is None else lax.mul(product, x)
        x, number = lax.mul(x, x), number >> 1
    product = jnp.ones_like(x) if product is None else product
    return lax.div(jnp.ones_like(x), product) if y < 0 else product


def _tiled(x: jax.Array, *, reps: tuple[int, ...]) -> jax.Array:
    sizes = [size for pair in zip(reps, x.shape, strict=True) for size in pair]
    x = lax.broadcast_in_dim(x, sizes, range(1, len(sizes), 2))
    return x.reshape([times * size for times, size in zip(sizes[::2], sizes[1::2], strict=True)])


MADE_OF_OTHERS: dict[str, Callable[..., Any]] = {
    "argmin": functools.partial(_place_of, jnp.min),
    "argmax": functools.partial(_place_of, jnp.max),
    "dot_general": _product,
    "pad": _padded,
    "integer_pow": _power,
    "split": lambda x, *, sizes, axis: [
        lax.slice_in_dim(x, sum(sizes[:k]), sum(sizes[: k + 1]), axis=axis)
        for k in range(len(sizes))
    ],
    "tile": _tiled,
    "stack": lambda *arrays, axis: jnp.concatenate(
        [jnp.expand_dims(one, axis) for one in arrays], axis
    ),
}
"""Operations by simpler ones: functions of the operands and the parameters."""


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
      inputs: operands; of a conditional only the number of the branch, of a loop what it begins
        with: what it carries, and the arrays of a scan.
      blocks: the branches of a conditional; the test of a loop, if it has one, and its body.
      given: what the blocks are given: in each step of a loop, a value for each input.
      around: other values that the blocks read, of the code around.
      origins: the equation of the jaxpr, and those that call it.
    """

    name: str
    inputs: list[Any]
    outputs: list[Var]
    params: dict[str, Any]
    blocks: list["Block"]
    given: list[Var]
    around: list[Any]
    origins: tuple[Any, ...]


class Block(NamedTuple):
    """Equations, which may read values of the code around."""

    equations: list[Equation]
    outputs: list[Any]


def block_of(jaxpr: Any, arguments: list[Any]) -> Block:
    """Returns a jaxpr of some arguments as a block."""
    equations: list[Equation] = []
    return Block(equations, _inline(jaxpr, arguments, equations, {}, ()))


def _nested(eqn: Any, inputs: list[Any]) -> tuple[Any, ...]:
    """Returns the `inputs`, `blocks`, `given` and `around` of an equation."""
    params: Any = eqn.params
    match eqn.primitive.name:
        case "cond":
            which, *around = inputs
            return [which], [block_of(one, around) for one in params["branches"]], [], around
        case "while":
            first, second = params["cond_nconsts"], params["body_nconsts"]
            jaxprs = params["cond_jaxpr"], params["body_jaxpr"]
            constants = [inputs[:first], inputs[first : first + second]]
        case "scan":
            # What it carries has one shape inside and outside; what it is over has an axis more.
            jaxprs = (body,) = (params["jaxpr"],)
            last = _num_same(inputs, _open(body).invars)
            constants = [inputs[: last - _num_same(eqn.outvars, _open(body).outvars)]]
        case "each":
            jaxprs, constants = (params["jaxpr"],), [[]]
        case _:
            return inputs, [], [], []
    given = [Var(var.aval) for var in _open(jaxprs[-1]).invars[len(constants[-1]) :]]
    pairs = zip(jaxprs, constants, strict=True)
    around = [*itertools.chain(*constants)]
    blocks = [block_of(jaxpr, [*own, *given]) for jaxpr, own in pairs]
    return inputs[len(around) :], blocks, given, around


def _num_same(around: list[Any], within: list[Any]) -> int:
    """Returns how many values have as many axes around a step as within."""
    pairs = zip(around, within, strict=True)
    return sum(len(one.aval.shape) == len(other.aval.shape) for one, other in pairs)


def _open(jaxpr: Any) -> Any:
    return jaxpr.jaxpr if isinstance(jaxpr, ClosedJaxpr) else jaxpr


def _results(equation: Equation) -> Any:
    """Returns the outputs; for what no branch or no step changes, what it was before."""
    outputs, blocks = equation.outputs, equation.blocks
    if equation.name == "cond":
        ends = zip(*(block.outputs for block in blocks), strict=True)
        pairs = zip(outputs, ends, strict=True)
        return [own[0] if all(one is own[0] for one in own) else out for out, own in pairs]
    if equation.name in ("while", "scan"):
        # What a scan is over, and what it gathers, may be fewer or more.
        rows = zip(outputs, blocks[-1].outputs, equation.given, equation.inputs, strict=False)
        found = [start if end is before else out for out, end, before, start in rows]
        return [*found, *outputs[len(found) :]]
    return outputs


def _inline(
    closed: Any,
    arguments: list[Any],
    into: list[Equation],
    found: Any,
    callers: tuple[Any, ...],
    is_ours: bool = False,
) -> list[Any]:
    """Appends the equations of a jaxpr, and returns its results.

    Args:
      found: the results of pure operations so far, which are not computed again.
      callers: the equations that call this jaxpr, the innermost first.
      is_ours: whether it is from `MADE_OF_OTHERS`, so that only callers tell where it stands.
    """
    jaxpr = _open(closed)
    known = dict(zip(jaxpr.invars, arguments, strict=True))
    for var, constant in zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=True):
        if np.size(constant) != 1:
            reason = f"holds a constant of shape {np.shape(constant)}, expected a leaf"
            raise Unportable(reason).at(callers)
        known[var] = Literal(np.asarray(constant), var.aval)

    def read(atom: Any) -> Any:
        return atom if isinstance(atom, Literal) else known[atom]

    for eqn in jaxpr.eqns:
        name, params, inputs = eqn.primitive.name, eqn.params, [*map(read, eqn.invars)]
        origins = callers if is_ours else (eqn, *callers)
        if name in _CALLS:
            inner = params.get("jaxpr") or params.get("call_jaxpr") or params["fun_jaxpr"]
            outputs = _inline(inner, inputs, into, found, origins, is_ours)
        elif name in MADE_OF_OTHERS:
            try:
                inner = _made_of_others(eqn)
            except Unportable as error:
                raise error.at(origins) from None
            outputs = _inline(inner, inputs, into, found, origins, True)
        else:
            key = _key_of(name, inputs, params)
            if outputs := found.get(key):
                known.update(zip(eqn.outvars, outputs, strict=True))
                continue
            outputs = [Var(var.aval) for var in eqn.outvars]
            if key:
                found[key] = outputs
            if name == "while" and _open(params["cond_jaxpr"]).outvars[0].aval.shape:
                raise Unportable("loops until each of several ends").at(origins)
            inputs, blocks, given, around = _nested(eqn, inputs)
            equation = Equation(name, inputs, outputs, params, blocks, given, around, origins)
            into.append(equation)
            outputs = _results(equation)
        known.update(zip(eqn.outvars, outputs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _made_of_others(eqn: Any) -> ClosedJaxpr:
    made = functools.partial(MADE_OF_OTHERS[eqn.primitive.name], **eqn.params)
    avals = (var.aval for var in eqn.invars)
    return jax.make_jaxpr(made)(*(jax.ShapeDtypeStruct(one.shape, one.dtype) for one in avals))


def _key_of(name: str, inputs: list[Any], params: dict[str, Any]) -> Any:
    """Returns what equal results have in common, or None if an operation is not elementwise."""
    if name not in (*ELEMENTWISE, "iota", "broadcast_in_dim"):
        return None
    atoms = (
        (str(atom.aval), np.asarray(atom.val).tobytes()) if isinstance(atom, Literal) else atom
        for atom in inputs
    )
    return name, *atoms, str(params)


def expression(equation: Equation) -> str:
    """Returns the C++ of an elementwise operation."""
    text = ELEMENTWISE.get(equation.name)
    if text is None:
        raise Unportable(f"uses {equation.name}, which a fused kernel cannot")
    return text if isinstance(text, str) else text(equation)
