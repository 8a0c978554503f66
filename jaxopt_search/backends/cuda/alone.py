# pyright: basic
"""What a thread computes by itself, as C++: a user's plain JAX, arrays and all.

An array is a rule that gives the C++ of an entry, so that chains of operations on arrays need no
memory: entries are computed where a loop asks for them. What is asked for again and takes more
than a little to compute, and what loops and scatters make, is kept in memory of the thread. Sums go
from the first entry to the last.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal
from jax.lax import GatherScatterMode

from jaxopt_search.backends.cuda.operations import (
    ELEMENTWISE,
    REDUCTIONS,
    VIEWS,
    Block,
    expression,
    literal,
    type_of,
)
from jaxopt_search.backends.cuda.trace import Unportable

Place = tuple[str, ...]
"""C++ of an index along each axis."""

_MOST_BYTES = 2**15  # of a thread's own arrays
# Operations for an entry of a vector, or of an array of more axes, that is computed again rather
# than kept.
_CHEAP, _CHEAP_OF_MANY = 8, 100
_CUMULATIVE = {"cumsum": "Sum", "cumprod": "Product", "cummax": "Max", "cummin": "Min"}
_FEW_UPDATES = 4  # of an array that need no copy of it


class Array(NamedTuple):
    """An array, or a scalar with no axis.

    Attributes:
      shape: of it.
      dtype: of its entries.
      at: gives the C++ of an entry.
      weight: about how many operations that is.
      is_stored: whether it is in memory, and its entries take no code of their own.
      base: the array that it is but for a few entries, or None.
      changes: of the base, in turn: the index along each axis, and the value.
    """

    shape: tuple[int, ...]
    dtype: Any
    at: Callable[[Place], str]
    weight: int = 0
    is_stored: bool = False
    base: Any = None
    changes: tuple[tuple[Place, str], ...] = ()


def stored(name: str, shape: tuple[int, ...], dtype: Any) -> Array:
    """Returns an array in memory, row by row."""
    return Array(shape, dtype, lambda place: f"{name}[{_flat(place, shape)}]", 1, is_stored=True)


def number_of(text: str, dtype: Any) -> Array:
    """Returns a number, given as C++."""
    return Array((), dtype, lambda place: text)


def _flat(place: Place, shape: Sequence[int]) -> str:
    terms = [
        f"({index}) * {size}" if (size := math.prod(shape[axis + 1 :])) > 1 else index
        for axis, index in enumerate(place)
        if index != "0"
    ]
    return " + ".join(terms) or "0"


def _along(axes: Sequence[int], place: Sequence[str]) -> Place:
    """Returns a place, given the index along each of some axes, all of them in any order."""
    return tuple(index for _, index in sorted(zip(axes, place, strict=True)))


def _within(place: Sequence[str], shape: Sequence[int]) -> str:
    """Returns the C++ of whether a place is one of an array."""
    pairs = zip(place, shape, strict=True)
    return " && ".join(f"(unsigned)({i}) < {n}u" for i, n in pairs if i != "0") or "true"


def _whole(dtype: Any) -> bool:
    return not jnp.issubdtype(dtype, jnp.floating)


def _limits(dtype: Any) -> tuple[Any, Any]:
    """Returns the least and the highest value of a dtype."""
    if dtype == np.bool_:
        return False, True
    return (jnp.iinfo(dtype).min, jnp.iinfo(dtype).max) if _whole(dtype) else (-np.inf, np.inf)


class Alone:
    """Writes the C++ of one thread.

    Attributes:
      values: what is known so far, set by whoever runs a block for what it is given.

    Args:
      kernel: the `emit.Emitter` of the code around, which takes the lines and has the names.
    """

    def __init__(self, kernel: Any) -> None:
        self._kernel, self.put = kernel, kernel.put
        self.values: dict[Any, Array] = {}
        self._bytes = 0
        self._known: list[dict[Any, str]] = [{}]

    # Lines.
    def name(self, letter: str = "u") -> str:
        return self._kernel.name(letter)

    @contextlib.contextmanager
    def within(self, opening: str) -> Iterator[None]:
        self._known.append({})
        with self._kernel.within(opening):
            yield
        self._known.pop()

    @contextlib.contextmanager
    def loops(self, shape: Sequence[int]) -> Iterator[Place]:
        """Gives each place of a shape in turn."""
        with contextlib.ExitStack() as stack:
            place = []
            for size in shape:
                index = "0" if size == 1 else self.name("i")
                if size != 1:
                    head = f"for (int {index} = 0; {index} < {size}; {index}++)"
                    stack.enter_context(self.within(head))
                place.append(index)
            yield tuple(place)

    def define(self, dtype: Any, text: str) -> str:
        """Returns the name of a new constant; the same one for the same text."""
        for known in self._known:
            if text in known:
                return known[text]
        name = self.name()
        self.put(f"const {type_of(dtype)} {name} = {text};")
        self._known[-1][text] = name
        return name

    def variable(self, dtype: Any, text: str) -> str:
        name = self.name()
        self.put(f"{type_of(dtype)} {name} = {text};")
        return name

    def room(self, shape: tuple[int, ...], dtype: Any) -> str:
        """Declares an array of the thread's own, and returns its name."""
        self._bytes += (size := max(math.prod(shape), 1)) * np.dtype(dtype).itemsize
        if self._bytes > _MOST_BYTES:
            raise Unportable(f"needs more than {_MOST_BYTES} bytes of arrays for each move")
        name = self.name("m")
        self.put(f"{type_of(dtype)} {name}[{size}];")
        return name

    # Arrays.
    def kept(self, array: Array) -> Array:
        """Returns an array whose entries are in memory, or a scalar that has a name."""
        if not array.shape:
            return number_of(self.define(array.dtype, array.at(())), array.dtype)
        return stored(self.kept_anew(array), array.shape, array.dtype)

    def fill(self, name: str, array: Array) -> None:
        with self.loops(array.shape) as place:
            self.put(f"{name}[{_flat(place, array.shape)}] = {array.at(place)};")

    def value(self, atom: Any) -> Array:
        if isinstance(atom, Literal):
            aval: Any = atom.aval
            return number_of(literal(atom.val, aval.dtype), aval.dtype)._replace(shape=aval.shape)
        return self.values[atom]

    def run(self, block: Block) -> list[Array]:
        """Writes a block, and returns its results."""
        needed, often = _needed(block)
        for equation in block.equations:
            if not any(output in needed for output in equation.outputs):
                continue
            try:
                results = self.equation(equation, [*map(self.value, equation.inputs)])
            except Unportable as error:
                raise error.at(equation.origins) from None
            for output, array in zip(equation.outputs, results, strict=True):
                most = _CHEAP if len(array.shape) == 1 else _CHEAP_OF_MANY
                is_dear = array.weight > most and output in often
                self.values[output] = self.kept(array) if is_dear or not array.shape else array
        return [*map(self.value, block.outputs)]

    def equation(self, equation: Any, inputs: list[Array]) -> list[Array]:
        handler = getattr(self, f"on_{equation.name}".replace("-", "_"), None)
        if handler is not None:
            return handler(equation, inputs)
        text, dtype = expression(equation), equation.outputs[0].aval.dtype

        def at(place: Place) -> str:
            own = (one.at(place if one.shape else ()) for one in inputs)
            return self.define(dtype, text.format(*own))

        weight = 1 + sum(one.weight for one in inputs)
        return [Array(equation.outputs[0].shape, dtype, at, weight)]

    def _view(
        self,
        equation: Any,
        array: Array,
        axes: Sequence[int | None],
        starts: Sequence[Any] | None = None,
        steps: Sequence[int] | None = None,
    ) -> list[Array]:
        """Returns entries of an array.

        Args:
          axes: of the result, along which each axis of the array goes; None where it stays at 0.
          starts: where each begins; None for 0.
          steps: how far it goes at a time; None for 1.
        """

        def at(place: Place) -> str:
            where = ["0" if axis is None else place[axis] for axis in axes]
            if steps:
                pairs = zip(where, steps, strict=True)
                where = [i if step == 1 else f"{i} * {step}" for i, step in pairs]
            if starts:
                where = [f"({start} + {i})" for start, i in zip(starts, where, strict=True)]
            return array.at(tuple(where))

        return [Array(equation.outputs[0].shape, array.dtype, at, array.weight)]

    def on_iota(self, equation: Any, inputs: list[Array]) -> list[Array]:
        dtype, axis = equation.outputs[0].aval.dtype, equation.params["dimension"]
        kind = type_of(dtype)
        return [Array(equation.outputs[0].shape, dtype, lambda place: f"({kind})({place[axis]})")]

    def on_broadcast_in_dim(self, equation: Any, inputs: list[Array]) -> list[Array]:
        axes = zip(equation.params["broadcast_dimensions"], inputs[0].shape, strict=True)
        return self._view(equation, inputs[0], [None if n == 1 else axis for axis, n in axes])

    def on_reshape(self, equation: Any, inputs: list[Array]) -> list[Array]:
        array, to = inputs[0], equation.outputs[0].shape
        old = [axis for axis, size in enumerate(array.shape) if size != 1]
        new = [axis for axis, size in enumerate(to) if size != 1]
        if [array.shape[axis] for axis in old] == [to[axis] for axis in new]:
            where = dict(zip(old, new, strict=True))
            return self._view(equation, array, [*map(where.get, range(len(array.shape)))])
        inner = [math.prod(array.shape[axis + 1 :]) for axis in range(len(array.shape))]

        def at(place: Place) -> str:
            flat = self.define(np.int32, _flat(place, to))
            pairs = zip(inner, array.shape, strict=True)
            return array.at(tuple(f"({flat} / {step} % {size})" for step, size in pairs))

        return [Array(to, array.dtype, at, array.weight)]

    on_squeeze = on_expand_dims = on_reshape

    def on_transpose(self, equation: Any, inputs: list[Array]) -> list[Array]:
        order = equation.params["permutation"]
        return self._view(equation, inputs[0], [order.index(axis) for axis in range(len(order))])

    def on_rev(self, equation: Any, inputs: list[Array]) -> list[Array]:
        shape, turned = inputs[0].shape, equation.params["dimensions"]
        starts = [n - 1 if axis in turned else 0 for axis, n in enumerate(shape)]
        steps = [-1 if axis in turned else 1 for axis in range(len(shape))]
        return self._view(equation, inputs[0], range(len(shape)), starts, steps)

    def on_slice(self, equation: Any, inputs: list[Array]) -> list[Array]:
        starts, steps = equation.params["start_indices"], equation.params["strides"]
        return self._view(equation, inputs[0], range(len(starts)), starts, steps)

    def on_concatenate(self, equation: Any, inputs: list[Array]) -> list[Array]:
        axis, (output,) = equation.params["dimension"], equation.outputs
        inputs = [array for array in inputs if array.shape[axis]]
        sizes = [array.shape[axis] for array in inputs]
        starts = [sum(sizes[:number]) for number in range(len(sizes))]

        def at(place: Place) -> str:
            text, index = "", place[axis]
            for array, start, size in reversed(list(zip(inputs, starts, sizes, strict=True))):
                if index.isdigit() and not start <= int(index) < start + size:
                    continue
                own = f"({index} - {start})" if start else index
                if not index.isdigit():  # others are computed, too
                    own = f"clamp(0, {own}, {size - 1})"
                entry = array.at((*place[:axis], own, *place[axis + 1 :]))
                test = f"{index} < {start + size} ? {entry} : {text}"
                text = self.define(output.aval.dtype, f"({test})" if text else entry)
            return text or literal(0, output.aval.dtype)  # of none

        weight = sum(2 + array.weight for array in inputs)
        return [Array(output.shape, output.aval.dtype, at, weight)]

    def on_dynamic_slice(self, equation: Any, inputs: list[Array]) -> list[Array]:
        array, *starts = inputs
        to = equation.outputs[0].shape
        first = self._clamped([one.at(()) for one in starts], array.shape, to)
        return self._view(equation, array, range(len(to)), first)

    def _clamped(self, starts: Sequence[str], shape: Any, sizes: Any) -> list[str]:
        """Returns where slices of some sizes begin, moved into an array."""
        return [
            self.define(np.int32, f"clamp(0, index_of({start}), {whole - size})")
            for start, whole, size in zip(starts, shape, sizes, strict=True)
        ]

    def on_dynamic_update_slice(self, equation: Any, inputs: list[Array]) -> list[Array]:
        array, update, *starts = inputs
        whole, shape = self.kept_anew(array), array.shape
        first = self._clamped([one.at(()) for one in starts], shape, update.shape)
        with self.loops(update.shape) as place:
            to = tuple(f"({a} + {b})" for a, b in zip(first, place, strict=True))
            self.put(f"{whole}[{_flat(to, shape)}] = {update.at(place)};")
        return [stored(whole, shape, array.dtype)]

    def kept_anew(self, array: Array) -> str:
        """Returns the name of a copy that may be written to."""
        name = self.room(array.shape, array.dtype)
        self.fill(name, array)
        return name

    # Reductions.
    def _least(self, op: str, dtype: Any) -> str:
        """Returns what a reduction begins with."""
        least, most = _limits(dtype)
        every_bit = np.invert(np.zeros((), dtype)) if op == "And" else 0
        values = {"Product": 1, "And": every_bit, "Max": least, "Min": most}
        return literal(values.get(op, 0), dtype)

    def on_reduce_sum(self, equation: Any, inputs: list[Array]) -> list[Array]:
        op, axes = REDUCTIONS[equation.name], equation.params["axes"]
        (array,), (output,) = inputs, equation.outputs
        shape, dtype = output.shape, output.aval.dtype
        kept = [axis for axis in range(len(array.shape)) if axis not in axes]
        name = self.room(shape, dtype) if shape else ""
        with self.loops(shape) as place:
            total = self.variable(dtype, self._least(op, dtype))
            with self.loops([array.shape[axis] for axis in axes]) as inner:
                entry = array.at(_along((*kept, *axes), (*place, *inner)))
                self.put(f"{total} = {op}::of({total}, {entry});")
            if name:
                self.put(f"{name}[{_flat(place, shape)}] = {total};")
        return [stored(name, shape, dtype) if name else number_of(total, dtype)]

    on_reduce_min = on_reduce_max = on_reduce_prod = on_reduce_sum
    on_reduce_and = on_reduce_or = on_reduce_xor = on_reduce_sum

    def on_cumsum(self, equation: Any, inputs: list[Array]) -> list[Array]:
        (array,), params = inputs, equation.params
        op = _CUMULATIVE[equation.name]
        axis, size = params["axis"], array.shape[params["axis"]]
        name = self.room(array.shape, array.dtype)
        with self.loops([1 if one == axis else n for one, n in enumerate(array.shape)]) as outer:
            total = self.variable(array.dtype, self._least(op, array.dtype))
            with self.loops([size]) as (index,):
                index = f"({size - 1} - {index})" if params["reverse"] else index
                place = (*outer[:axis], index, *outer[axis + 1 :])
                self.put(f"{total} = {op}::of({total}, {array.at(place)});")
                self.put(f"{name}[{_flat(place, array.shape)}] = {total};")
        return [stored(name, array.shape, array.dtype)]

    on_cumprod = on_cummax = on_cummin = on_cumsum

    # Indices.
    def on_gather(self, equation: Any, inputs: list[Array]) -> list[Array]:
        (array, indices), (output,), params = inputs, equation.outputs, equation.params
        numbers, sizes, dtype = params["dimension_numbers"], params["slice_sizes"], array.dtype
        several = numbers.operand_batching_dims  # axes of which each entry has indices of its own
        inner = (*numbers.collapsed_slice_dims, *several)
        window = [axis for axis in range(len(sizes)) if axis not in inner]
        batch = [axis for axis in range(len(output.shape)) if axis not in numbers.offset_dims]
        is_filled = params["mode"] == GatherScatterMode.FILL_OR_DROP
        fill = params.get("fill_value")
        if fill is None:
            least, most = _limits(dtype)
            fill = least if jnp.issubdtype(dtype, jnp.signedinteger) else most
            fill = fill if _whole(dtype) else np.nan

        def at(place: Place) -> str:
            row = tuple(place[axis] for axis in batch)
            starts = {
                axis: self.define(np.int32, f"index_of({indices.at((*row, str(k)))})")
                for k, axis in enumerate(numbers.start_index_map)
            }
            where, tests = ["0"] * len(sizes), []
            for axis, number in zip(several, numbers.start_indices_batching_dims, strict=True):
                where[axis] = row[number]
            for axis, offset in zip(window, numbers.offset_dims, strict=True):
                where[axis] = place[offset]
            for axis, start in starts.items():
                most = array.shape[axis] - sizes[axis]
                tests.append(f"(unsigned){start} <= {most}u")
                is_tested = is_filled and array.is_stored
                inside = start if is_tested else f"clamp(0, {start}, {most})"
                where[axis] = inside if where[axis] == "0" else f"({inside} + {where[axis]})"
            entry = array.at(tuple(where))
            if not is_filled or not tests:
                return self.define(dtype, entry)
            nothing = literal(fill, dtype)
            return self.define(dtype, f"({' && '.join(tests)} ? {entry} : {nothing})")

        weight = 1 + array.weight + indices.weight
        return [Array(output.shape, dtype, at, weight)]

    def on_scatter(self, equation: Any, inputs: list[Array]) -> list[Array]:
        (array, indices, updates), params = inputs, equation.params
        numbers, shape, dtype = params["dimension_numbers"], array.shape, array.dtype
        is_clipped = params["mode"] == GatherScatterMode.CLIP
        several = numbers.operand_batching_dims
        kinds = {"scatter": "", "scatter-max": "Max", "scatter-min": "Min", "scatter-add": "Sum"}
        op = kinds[equation.name]
        if not op and params["update_jaxpr"] is not None:
            raise Unportable("applies a function at indices")
        is_by_entry = not (op or is_clipped or several or numbers.update_window_dims)
        if is_by_entry and math.prod(updates.shape) <= _FEW_UPDATES:
            return [self._updated(numbers, *inputs)]
        name, inner = self.kept_anew(array), (*numbers.inserted_window_dims, *several)
        window = [axis for axis in range(len(shape)) if axis not in inner]
        with self.loops(updates.shape) as place:
            batch = (axis for axis in range(len(place)) if axis not in numbers.update_window_dims)
            row, where = tuple(place[axis] for axis in batch), ["0"] * len(shape)
            for axis, number in zip(several, numbers.scatter_indices_batching_dims, strict=True):
                where[axis] = row[number]
            room = list(shape)  # of where a window fits in
            for axis, offset in zip(window, numbers.update_window_dims, strict=True):
                where[axis] = place[offset]
                room[axis] -= updates.shape[offset] - 1
            starts = ["0"] * len(shape)
            for k, axis in enumerate(numbers.scatter_dims_to_operand_dims):
                index = f"index_of({indices.at((*row, str(k)))})"
                index = f"clamp(0, {index}, {room[axis] - 1})" if is_clipped else index
                starts[axis] = self.define(np.int32, index)
                where[axis] = f"({starts[axis]} + {where[axis]})"
            entry, update = f"{name}[{_flat(tuple(where), shape)}]", updates.at(place)
            value = f"{op}::of({entry}, {update})" if op else update
            self.put(f"if ({_within(starts, room)}) {entry} = {value};")
        return [stored(name, shape, dtype)]

    def _updated(self, numbers: Any, array: Array, indices: Array, updates: Array) -> Array:
        """Returns an array with a few other entries, the last one of those at one place."""
        changes = []
        for place in np.ndindex(*updates.shape):
            row, index = tuple(map(str, place)), ["0"] * len(array.shape)
            for k, axis in enumerate(numbers.scatter_dims_to_operand_dims):
                index[axis] = self.define(np.int32, f"index_of({indices.at((*row, str(k)))})")
            changes.append((tuple(index), self.define(array.dtype, updates.at(row))))

        def at(place: Place) -> str:
            text = array.at(place)
            for index, value in changes:
                pairs = zip(place, index, strict=True)
                test = " && ".join(f"{own} == {start}" for own, start in pairs)
                text = self.define(array.dtype, f"({test} ? {value} : {text})")
            return text

        weight, base = array.weight + 2 * len(changes), array if array.base is None else array.base
        return Array(
            array.shape, array.dtype, at, weight, base=base, changes=(*array.changes, *changes)
        )

    on_scatter_add = on_scatter_max = on_scatter_min = on_scatter

    # Control flow.
    def _variables(self, arrays: Sequence[Array]) -> list[tuple[str, Array]]:
        """Returns names of variables that hold copies, and the arrays that these are."""
        made = []
        for array in arrays:
            if array.shape:
                name = self.kept_anew(array)
                made.append((name, stored(name, array.shape, array.dtype)))
            else:
                name = self.variable(array.dtype, array.at(()))
                made.append((name, Array((), array.dtype, lambda place, name=name: name)))
        return made

    def _assign(self, variables: list[tuple[str, Array]], values: Sequence[Array]) -> None:
        """Assigns values, which may be made of the variables' own."""
        pairs = [
            (name, old, new)
            for (name, old), new in zip(variables, values, strict=True)
            if not (new.shape == () and new.at(()) == name)
        ]
        own = [id(array) for _, array in variables]
        is_whole = [new.base is not old for _, old, new in pairs]
        ready = [
            new if (new.is_stored and id(new) not in own) or not is_new else self.kept(new)
            for (*_, new), is_new in zip(pairs, is_whole, strict=True)
        ]
        for (name, old, _), new, is_new in zip(pairs, ready, is_whole, strict=True):
            if not old.shape:
                self.put(f"{name} = {new.at(())};")
            elif is_new:
                self.fill(name, new)
            else:
                for index, value in new.changes:
                    tests = _within(index, old.shape)
                    self.put(f"if ({tests}) {name}[{_flat(index, old.shape)}] = {value};")

    def on_while(self, equation: Any, inputs: list[Array]) -> list[Array]:
        (*tests, body), params = equation.blocks, equation.params
        pairs = zip(inputs, equation.given, strict=True)
        number = sum(len(array.shape) == len(own.shape) for array, own in pairs)  # carried
        variables = self._variables(inputs[:number])
        carried = [array for _, array in variables]
        outputs = equation.outputs[number:]
        rows = [self.room(output.shape, output.aval.dtype) for output in outputs]
        index, head = "", "for (;;)"
        if not tests:  # a scan
            index, length = self.name("i"), params["length"]
            head = f"for (int {index} = 0; {index} < {length}; {index}++)"
            index = f"({length - 1} - {index})" if params["reverse"] else index
        slices = [
            Array(one.shape[1:], one.dtype, lambda place, one=one: one.at((index, *place)), 1)
            for one in inputs[number:]
        ]
        self.values.update(zip(equation.given, [*carried, *slices], strict=True))
        # A scope of its own, also of one step: what is known of variables ends with it.
        with self.within(head):
            for test in tests:
                (goes_on,) = self.run(test)
                self.put(f"if (!{goes_on.at(())}) break;")
            results = self.run(body)
            for name, output, row in zip(rows, outputs, results[number:], strict=True):
                with self.loops(row.shape) as place:
                    self.put(f"{name}[{_flat((index, *place), output.shape)}] = {row.at(place)};")
            self._assign(variables, results[:number])
        pairs = zip(rows, outputs, strict=True)
        return [*carried, *(stored(name, one.shape, one.aval.dtype) for name, one in pairs)]

    on_scan = on_while

    def on_cond(self, equation: Any, inputs: list[Array]) -> list[Array]:
        zero = [
            number_of(literal(0, one.aval.dtype), one.aval.dtype)._replace(shape=one.shape)
            for one in equation.outputs
        ]
        variables = self._variables(zero)
        chosen = self.define(np.int32, f"(int)({inputs[0].at(())})")
        for number, block in enumerate(equation.blocks):
            with self.within(f"if ({chosen} == {number})"):
                self._assign(variables, self.run(block))
        return [array for _, array in variables]


def _needed(block: Block) -> tuple[set[Any], set[Any]]:
    """Returns the values that results depend on, and those whose entries are asked for again."""
    needed = {atom for atom in block.outputs if not isinstance(atom, Literal)}
    often, used = set(needed), set(needed)
    for equation in reversed(block.equations):
        if not any(output in needed for output in equation.outputs):
            continue
        for number, atom in enumerate((*equation.inputs, *equation.around)):
            if isinstance(atom, Literal):
                continue
            if atom in used or not _asks_once(equation, number):
                often.add(atom)
            used.add(atom)
            needed.add(atom)
    return needed, often


def _asks_once(equation: Any, number: int) -> bool:
    """Returns whether an operation asks for each entry of an operand once for each of its own."""
    if equation.name in (*VIEWS, "broadcast_in_dim"):
        sizes = (math.prod(one.aval.shape) for one in (equation.inputs[0], equation.outputs[0]))
        return len(set(sizes)) == 1
    is_index = equation.name == "gather" and number == 1 and len(equation.outputs[0].shape) <= 1
    is_in_turn = equation.name in (*ELEMENTWISE, *REDUCTIONS, *_CUMULATIVE)
    return is_index or is_in_turn
