# pyright: basic
"""A traced program as CUDA C++: a block of threads per program, no device needed.

A value of one element is computed by every thread. The entries of any other are dealt out in turn:
thread t has entries t, t + T, t + 2 T, ... of T threads, each in a slot of its own, in registers.
The rows of a matrix are dealt out to groups of threads, a warp or more each, and the entries of a
row to the threads of its group: so a thread computes once what a row has for all of its entries.
Where there are fewer entries than threads, several threads have the same one.
Before threads read what others wrote, or write what others read, stands a barrier: each access is
compared with those since the last one (`_access`), so that portable code needs none of its own.
"""

import contextlib
import dataclasses
import itertools
import math
import pathlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from jaxopt_search.backends.backend import LANES
from jaxopt_search.backends.cuda.alone import Alone, Array, number_of, stored
from jaxopt_search.backends.cuda.operations import (
    ELEMENTWISE,
    REDUCTIONS,
    VIEWS,
    Block,
    Equation,
    Var,
    block_of,
    expression,
    literal,
    type_of,
)
from jaxopt_search.backends.cuda.trace import Unportable

HEADER = (pathlib.Path(__file__).parent / "header.h").read_text()
BARRIER_AFTER_WRITES = False
"""Whether none is left out: set it before a kernel is made, to find out if a barrier is missing."""
_EXCHANGE = 512  # bytes for what warps have found
_REPLACES = "replaces a buffer, expected the one that `store` returns"
_BEFORE = "the step before"
_USES_IN_LOOP = 8  # of a line in a loop, for one outside


class Layout(NamedTuple):
    """How values are dealt out: one for each of the "entries", "rows" or "columns" of a matrix."""

    rows: int
    columns: int
    of: str = "entries"

    @property
    def count(self) -> int:
        rows, columns, of = self
        return {"entries": rows * columns, "rows": rows, "columns": columns}[of]


UNIFORM, MEMORY = Layout(1, 1), Layout(0, 0)
Value = Callable[[int], str]
"""Maps a slot to the C++ of what is in it."""


def natural(atom: Any) -> Layout:
    """Returns the layout in which an array is computed if nothing else is asked for."""
    shape = _squeezed(atom.aval.shape)
    return Layout(*shape) if len(shape) == 2 else Layout(1, math.prod(shape))


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


# -- Which layouts are needed ---------------------------------------------------------------------
Layouts: TypeAlias = set[Layout]
Wanted: TypeAlias = dict[Any, Layouts]
"""The layouts in which each value of a program is needed."""


def demand(block: Block, of_outputs: list[Layouts], wanted: Wanted) -> None:
    """Notes the layouts in which values are needed for those in which the outputs are."""
    for output, layouts in zip(block.outputs, of_outputs, strict=True):
        if isinstance(output, Var):
            wanted[output] |= layouts
    for equation in reversed(block.equations):
        outs = [wanted[output] for output in equation.outputs]
        if any(outs):
            for atom, layouts in zip(equation.inputs, _wants(equation, outs, wanted), strict=True):
                if isinstance(atom, Var):
                    wanted[atom] |= layouts


def _wants(equation: Equation, outs: list[Layouts], wanted: Wanted) -> list[Layouts]:
    """Returns the layouts in which the operands are needed."""
    name, inputs = equation.name, equation.inputs
    naturals = [{natural(atom)} for atom in inputs]
    match name:
        case "load":
            return [{MEMORY}, *({_like(a, layout) for layout in outs[0]} for a in inputs[1:])]
        case "store":
            return [{MEMORY}, *naturals[1:]]
        case "copy_buffer" | "settled":
            return [{MEMORY}, {MEMORY}, {UNIFORM}][: len(inputs)]
        case "each":
            number, layouts = equation.params["num_shared"], set().union(*outs)
            read = [{MEMORY if atom.aval.shape else UNIFORM} for atom in inputs[:number]]
            return [*read, *({_like(a, one) for one in layouts} for a in inputs[number:])]
        case "cond":
            for branch in equation.blocks:
                demand(branch, outs, wanted)
            return [{UNIFORM}]
        case "while" | "scan":
            return _wants_of_loop(equation, outs, wanted)
    to = equation.outputs[0].shape
    if name in VIEWS or name in REDUCTIONS:
        is_view = _squeezed(inputs[0].aval.shape) == _squeezed(to)
        return [{_like(inputs[0], layout) for layout in outs[0]}] if is_view else naturals
    if name in ELEMENTWISE or name == "broadcast_in_dim":
        shapes = (_expanded(equation, number) for number in range(len(inputs)))
        return [{_before(shape, to, layout) for layout in outs[0]} for shape in shapes]
    return naturals


def _like(atom: Any, layout: Layout) -> Layout:
    return UNIFORM if natural(atom) == UNIFORM else layout


def _expanded(equation: Equation, number: int) -> tuple[int, ...]:
    """Returns the shape of an operand, with an axis for each of the result's."""
    shape, to = equation.inputs[number].aval.shape, equation.outputs[0].shape
    if equation.name == "broadcast_in_dim":
        sizes = dict(zip(equation.params["broadcast_dimensions"], shape, strict=True))
        return tuple(sizes.get(axis, 1) for axis in range(len(to)))
    return shape


def _before(shape: tuple[int, ...], to: tuple[int, ...], layout: Layout) -> Layout:
    """Returns the layout of an operand from which the result of an operation has the given one.

    Args:
      shape: of the operand, with an axis for each of the result's.
      to: the shape of the result.
    """
    if math.prod(shape) == 1:
        return UNIFORM
    if _squeezed(shape) == _squeezed(to):
        return layout
    if len(_squeezed(to)) != 2 or len(to) != 2:
        raise Unportable(f"broadcasts from shape {shape} to {to}")
    return Layout(*to, "columns" if shape[0] == 1 else "rows")


def _wants_of_loop(equation: Equation, outs: list[Layouts], wanted: Wanted) -> list[Layouts]:
    """Returns the layouts in which a loop carries what it carries, from its beginning on."""
    *tests, body = equation.blocks
    shapes = [[one.aval.shape for one in ones] for ones in (equation.inputs, equation.given)]
    if shapes[0] != shapes[1] or len(outs) != len(equation.given):
        raise Unportable("uses scan over arrays")
    carried = [wanted[var] for var in equation.given]
    for own, layouts in zip(carried, outs, strict=True):
        own |= layouts
    while True:
        before = [set(own) for own in carried]
        for test in tests:
            demand(test, [{UNIFORM}], wanted)
        demand(body, before, wanted)
        if carried == before:
            return before


# -- C++ ------------------------------------------------------------------------------------------
@dataclasses.dataclass(eq=False)
class _Storage:
    """An array in memory."""

    name: str
    aval: Any
    is_constant: bool


class _Part(NamedTuple):
    """A buffer as it is after this many writes."""

    storage: _Storage
    version: int


Accesses: TypeAlias = dict[Any, frozenset[tuple[bool, Any]]]
"""Of each array, whether it was written, and by what key."""


class Emitter:
    """Writes C++ for a block of a program.

    Attributes:
      threads: T.
      wanted: the layouts in which each value is needed.
      known: of each value so far, what it is by layout, or the buffer.
      lines: what is written so far.
      scratch: bytes through which threads exchange values.
      uses: of each array in memory, a guess of how often it is touched.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.wanted: Wanted = defaultdict(set)
        self.known: dict[Any, Any] = {}
        self._made_by: dict[Var, Equation] = {}
        self.lines: list[str] = []
        self.depth = 1
        self.scratch = 0
        self._numbers = itertools.count()
        self._slots, self._in_slots = range(0), []  # lines that are yet to be written for each slot
        self._accesses: Accesses = defaultdict(frozenset)
        # Of writes to each array so far, by which reads of what is no more are found.
        self._versions: dict[_Storage, int] = defaultdict(int)
        self._loops = 0  # around the code that is written
        self.uses: dict[Any, int] = defaultdict(int)

    # Layouts.
    def group(self, layout: Layout) -> int:
        """Returns how many threads share a row."""
        return min(layout.columns, max(LANES, self.threads // layout.rows), self.threads)

    def parts(self, layout: Layout) -> int:
        """Returns how many slots a thread has for a row."""
        return layout.columns // self.group(layout)

    def slots(self, layout: Layout) -> range:
        if (count := layout.count) & (count - 1):
            raise Unportable(f"has {count} lanes, expected a power of two, as `memory.lanes` has")
        parts, rows = self.parts(layout), layout.rows * self.group(layout) // self.threads
        each = {"rows": max(1, rows), "columns": parts, "entries": max(1, rows) * parts}
        return range(each[layout.of])

    def entry(self, layout: Layout, slot: int) -> str:
        """Returns the number of the entry in a slot."""
        (rows, columns, of), threads = layout, self.threads
        group, parts = self.group(layout), self.parts(layout)
        if of == "columns":
            return f"(t % {group} + {slot * group})"
        if of == "entries" and rows > 1 and parts > 1:
            row = self.entry(layout._replace(of="rows"), slot // parts)
            column = self.entry(layout._replace(of="columns"), slot % parts)
            return f"({row} * {columns} + {column})"
        total = rows * group
        place = f"(t % {total})" if total < threads else f"(t + {slot * threads})"
        return place if of == "entries" else f"({place} / {group})"

    def owner(self, layout: Layout) -> str:
        """Returns whether a thread is the one among those that have an entry; "" for always."""
        group = self.group(layout)
        some = group if layout.of == "columns" else layout.rows * group
        parts = [f"t < {some}"] if some < self.threads else []
        parts += [f"t % {group} == 0"] if layout.of == "rows" else []
        return " && ".join(parts)

    # Lines.
    def put(self, line: str) -> None:
        self._close()
        self.lines.append("  " * self.depth + line)

    def put_in_slots(self, slots: range, line: Value) -> None:
        """Writes a line for each slot. All that is to be done in a slot is done before the next."""
        if self._slots != slots:
            self._close()
            self._slots = slots
        self._in_slots.append(line)

    def _close(self) -> None:
        lines = [line(slot) for slot in self._slots for line in self._in_slots]
        self.lines += ["  " * self.depth + line for line in lines]
        self._slots, self._in_slots = range(0), []

    @contextlib.contextmanager
    def within(self, opening: str) -> Iterator[None]:
        self.put(opening + " {")
        self.depth += 1
        yield
        self._close()
        self.depth -= 1
        self.put("}")

    def name(self, letter: str = "v") -> str:
        return f"{letter}{next(self._numbers)}"

    def define(self, dtype: Any, layout: Layout, expression: Value) -> Value:
        """Writes the definition of a value."""
        kind, at = type_of(dtype), self._named(layout)
        line = lambda slot: f"const {kind} {at(slot)} = {expression(slot)};"  # noqa: E731
        self.put_in_slots(self.slots(layout), line)
        return at

    def _named(self, layout: Layout) -> Value:
        name, slots = self.name(), self.slots(layout)
        return lambda slot: f"{name}_{slot}" if len(slots) > 1 else name

    def variable(self, dtype: Any, layout: Layout) -> Value:
        """Writes the declaration of a value that is assigned to later."""
        at = self._named(layout)
        self.put(f"{type_of(dtype)} {', '.join(map(at, self.slots(layout)))};")
        return at

    def assign(self, layout: Layout, to: Value, value: Value) -> None:
        self.put_in_slots(self.slots(layout), lambda slot: f"{to(slot)} = {value(slot)};")

    # Barriers.
    def barrier(self) -> None:
        self._accesses.clear()
        self.put("BARRIER;")

    def _access(self, storage: Any, is_write: bool, key: Any) -> None:
        """Writes a barrier if another thread may have written, or read, what is accessed now.

        Args:
          key: accesses with one key, not None, are of the same elements by the same threads.
        """
        self._access_all([(storage, is_write, key)])

    def _access_all(self, accesses: list[tuple[Any, bool, Any]]) -> None:
        """Like `_access`, of what one operation accesses: a barrier stands before all of it."""
        for storage, *_ in accesses:
            if isinstance(storage, _Storage):
                self.uses[storage.name] += _USES_IN_LOOP**self._loops
        if any(
            (is_write or was_write) and (key is None or key != other)
            for storage, is_write, key in accesses
            for was_write, other in self._accesses[storage]
        ):
            self.barrier()
        for storage, is_write, key in accesses:
            if storage == "scratch" or not storage.is_constant:
                self._accesses[storage] |= {(is_write, key)}

    def _key(self, index: Any, layout: Layout, *masks: Any) -> Any:
        is_dealt_out_once = layout.of == "entries" and not self.owner(layout)
        if not is_dealt_out_once or not isinstance(index, Var):
            return None
        return index, layout, frozenset().union(*map(self._conditions, masks))

    def _conditions(self, mask: Any) -> frozenset[Any]:
        """Returns the parts of a mask that hold wherever it does, other than scalars.

        Only where masks hold has each lane an index of its own: those in excess have the last one.
        """
        if natural(mask) == UNIFORM:
            return frozenset()
        match self._made_by.get(mask):
            case Equation("and", inputs):
                return frozenset().union(*map(self._conditions, inputs))
            case Equation("broadcast_in_dim", [one]) if one.aval.ndim in (0, mask.aval.ndim):
                return self._conditions(one)
        return frozenset([mask])

    # Values.
    def get(self, atom: Any, layout: Layout) -> Value:
        return self.in_layout(atom, self.look_up(atom), layout)

    def in_layout(self, atom: Any, found: dict[Layout, Value], layout: Layout) -> Value:
        """Returns a value in a layout, through memory if threads have it in another one only.

        Args:
          found: the value by layout.
        """
        if layout in found:
            return found[layout]
        if UNIFORM in found:
            return found[UNIFORM]
        (source, value), *_ = found.items()
        dtype = atom.aval.dtype
        read = self.exchanged(dtype, source, value)
        return self.define(dtype, layout, lambda slot: read(self.entry(layout, slot)))

    def exchanged(self, dtype: Any, layout: Layout, value: Value) -> Callable[[str], str]:
        """Lets all threads read a value: returns what maps an entry to C++."""
        self._access("scratch", True, None)
        name, kind, owner = self.name(), type_of(dtype), self.owner(layout)
        self.put(f"{kind}* const {name} = ({kind}*)scratch;")
        condition = f"if ({owner}) " if owner else ""
        self.put_in_slots(
            self.slots(layout),
            lambda slot: f"{condition}{name}[{self.entry(layout, slot)}] = {value(slot)};",
        )
        self.scratch = max(self.scratch, layout.count * np.dtype(dtype).itemsize)
        self._access("scratch", False, None)
        return lambda entry: f"{name}[{entry}]"

    # Blocks.
    def run(self, block: Block) -> list[Any]:
        """Writes a block, and returns its outputs: of each, what is known of it."""
        for equation in block.equations:
            # Sorted: in another process sets have another order, and a cache another program.
            wanted = [sorted(self.wanted[output]) for output in equation.outputs]
            if any(wanted):
                try:
                    results = self.equation(equation, wanted[0])
                    for output, result, layouts in zip(
                        equation.outputs, results, wanted, strict=True
                    ):
                        if isinstance(result, dict):  # while it can be seen from everywhere
                            result |= {one: self.in_layout(output, result, one) for one in layouts}
                except Unportable as error:
                    raise error.at(equation.origins) from None
                self.known.update(zip(equation.outputs, results, strict=True))
                self._made_by.update(dict.fromkeys(equation.outputs, equation))
        return [*map(self.look_up, block.outputs)]

    def look_up(self, atom: Any) -> Any:
        """Returns what is known of a value: itself by layout, or the buffer."""
        if isinstance(atom, Literal):
            aval: Any = atom.aval
            text = literal(atom.val, aval.dtype)
            return {UNIFORM: lambda slot: text}
        return self.known.get(atom)

    def equation(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        """Writes an equation; returns of each result, by layout, the value, or the buffer.

        Args:
          layouts: in which the first result is needed.
        """
        handler = getattr(self, f"on_{equation.name}", None)
        if handler is not None:
            return handler(equation, layouts)
        (output,), text = equation.outputs, expression(equation)
        results = {}
        for layout in layouts:
            values = [self.operand(equation, i, layout) for i in range(len(equation.inputs))]
            results[layout] = self.define(output.aval.dtype, layout, _formatted(text, values))
        return [results]

    def on_iota(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        (output,), params = equation.outputs, equation.params
        shape = output.shape
        size, inner = shape[params["dimension"]], math.prod(shape[params["dimension"] + 1 :])
        kind = type_of(output.aval.dtype)

        def at(layout: Layout) -> Value:
            return lambda slot: f"({kind})({self.entry(layout, slot)} / {inner} % {size})"

        return [{layout: at(layout) for layout in layouts}]

    def on_broadcast_in_dim(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        return [{layout: self.operand(equation, 0, layout) for layout in layouts}]

    def operand(self, equation: Equation, number: int, layout: Layout) -> Value:
        """Returns an operand by the slots of a result in a layout."""
        before = _before(_expanded(equation, number), equation.outputs[0].shape, layout)
        value = self.get(equation.inputs[number], before)
        if before in (UNIFORM, layout):
            return value
        parts, is_of_rows = self.parts(layout), before.of == "rows"
        return lambda slot: value(slot // parts if is_of_rows else slot % parts)

    def on_reshape(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        (atom,), (output,) = equation.inputs[:1], equation.outputs
        if _squeezed(atom.aval.shape) == _squeezed(output.shape):
            return [{one: self.get(atom, _like(atom, one)) for one in layouts}]
        return [{natural(atom): self.get(atom, natural(atom))}]

    on_squeeze = on_expand_dims = on_reshape

    def on_slice(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        (atom,), (output,), params = equation.inputs, equation.outputs, equation.params
        if len(atom.aval.shape) != 1:
            raise Unportable(f"uses slice of shape {atom.aval.shape}, expected one axis")
        (start,), (step,) = params["start_indices"], params["strides"] or (1,)
        layout, dtype = natural(atom), output.aval.dtype
        read = self.exchanged(dtype, layout, self.get(atom, layout))

        def defined(to: Layout) -> Value:
            place = lambda slot: f"{self.entry(to, slot)} * {step} + {start}"  # noqa: E731
            return self.define(dtype, to, lambda slot: read(place(slot)))

        return [{one: defined(one) for one in layouts}]

    # Reductions.
    def _meet(self, group: int) -> int:
        """Returns how many threads share a reduction; several warps wait for one another in it."""
        if group > LANES:
            self._close()
            self._accesses.clear()
        return group

    def _reduced(self, dtype: Any, op: str, group: int, value: str) -> str:
        own = f"({type_of(dtype)})({value})"
        return f"reduce<{op}, {group}>({own}, t, exchange, turn)" if group > 1 else value

    def on_reduce_sum(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        (atom,), (output,) = equation.inputs, equation.outputs
        op, dtype = REDUCTIONS[equation.name], output.aval.dtype
        shape, axes = atom.aval.shape, equation.params["axes"]
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        if math.prod(kept) == math.prod(shape):  # over axes of one element
            return [{one: self.get(atom, _like(atom, one)) for one in layouts}]
        layout = natural(atom)
        value = self.get(atom, layout)
        if math.prod(kept) == 1:
            return [{UNIFORM: self._all_reduced(dtype, op, layout, value)}]
        if len(shape) == 2 and axes == (1,):
            rows = layout._replace(of="rows")
            return [{rows: self._rows_reduced(dtype, op, rows, value)}]
        raise Unportable(f"uses {equation.name} over axes {axes} of shape {shape}")

    on_reduce_min = on_reduce_max = on_reduce_prod = on_reduce_sum
    on_reduce_and = on_reduce_or = on_reduce_xor = on_reduce_sum

    def _all_reduced(self, dtype: Any, op: str, layout: Layout, value: Value) -> Value:
        own = _joined(op, [value(slot) for slot in self.slots(layout)])
        group = self._meet(min(layout.count, self.threads))
        return self.define(dtype, UNIFORM, lambda slot: self._reduced(dtype, op, group, own))

    def _rows_reduced(self, dtype: Any, op: str, rows: Layout, value: Value) -> Value:
        parts, group = self.parts(rows), self._meet(self.group(rows))

        def of_row(slot: int) -> str:
            own = _joined(op, [value(slot * parts + part) for part in range(parts)])
            return self._reduced(dtype, op, group, own)

        return self.define(dtype, rows, of_row)

    def on_cumsum(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        (atom,), (output,), params = equation.inputs, equation.outputs, equation.params
        shape, dtype, layout = atom.aval.shape, output.aval.dtype, natural(atom)
        if params["axis"] != len(shape) - 1 or params["reverse"] or layout.columns != shape[-1]:
            raise Unportable("uses cumsum over another axis than the last, or backwards")
        value = self.get(atom, layout)
        parts, group = self.parts(layout), self._meet(self.group(layout))
        total = self._named(layout)
        for slot in self.slots(layout):
            own = f"scan<{group}>({value(slot)}, t, exchange, turn)"
            if slot % parts:  # what stands before: the last one of the slot before
                before = f"last<{group}>({total(slot - 1)}, t, exchange, turn)"
                self.put(f"const {type_of(dtype)} {(name := self.name())} = {before};")
                own = f"add({name}, {own})"
            self.put(f"const {type_of(dtype)} {total(slot)} = {own};")
        return [{layout: total}]

    def on_pick(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        values, lane = equation.inputs
        dtype, layout = values.aval.dtype, natural(values)
        value, lane = self.get(values, layout), self.get(lane, UNIFORM)(0)
        if self.threads > LANES < layout.count:
            text = self.exchanged(dtype, layout, value)(lane)
        else:
            own = value(0)
            for slot in self.slots(layout)[1:]:
                own = f"({lane} / {LANES} == {slot} ? {value(slot)} : {own})"
            text = f"from_lane({own}, {lane} % {LANES})"
        return [{UNIFORM: self.define(dtype, UNIFORM, lambda slot: text)}]

    # Memory.
    def _buffer(self, atom: Any) -> _Storage:
        storage, version = self.known[atom]
        if version != self._versions[storage]:
            raise Unportable("reads a buffer as it was before a write to it")
        return storage

    def on_load(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        buffer, index, *masks = equation.inputs
        storage, dtype = self._buffer(buffer), equation.outputs[0].aval.dtype
        results = {}
        for layout in layouts:
            parts = [self.get(atom, _like(atom, layout)) for atom in (index, *masks)]
            self._access(storage, False, self._key(index, layout, *masks))

            def at(slot: int, parts: Any = parts) -> str:
                text = f"{storage.name}[{parts[0](slot)}]"
                nothing = f"({type_of(dtype)})0"
                return text if len(parts) == 1 else f"({parts[1](slot)} ? {text} : {nothing})"

            results[layout] = self.define(dtype, layout, at)
        return [results]

    def on_settled(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        storage = self._buffer(equation.inputs[0])
        self._access(storage, False, None)
        return [_Part(_Storage(storage.name, storage.aval, is_constant=True), 0)]

    def on_store(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        buffer, *rest = equation.inputs
        layout, storage = natural(rest[0]), self._buffer(buffer)
        index, value, where = (self.get(atom, _like(atom, layout)) for atom in rest)
        is_one = layout == UNIFORM
        self._access(storage, True, "one" if is_one else self._key(rest[0], layout, rest[2]))
        owner = "t == 0" if is_one else self.owner(layout)

        def line(slot: int) -> str:
            conditions = [part for part in (owner, where(slot)) if part not in ("", "true")]
            condition = f"if ({' && '.join(conditions)}) " if conditions else ""
            return f"{condition}{storage.name}[{index(slot)}] = {value(slot)};"

        self.put_in_slots(self.slots(layout), line)
        return [self._written(storage)]

    def _written(self, storage: _Storage) -> _Part:
        if storage.is_constant:
            raise Unportable("writes to what is only read")
        if BARRIER_AFTER_WRITES:
            self.barrier()
        self._versions[storage] += 1
        return _Part(storage, self._versions[storage])

    def on_copy_buffer(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        to, source, where = equation.inputs
        storage, other = self._buffer(to), self._buffer(source)
        condition = self.get(where, UNIFORM)(0)
        self._access_all([(other, False, "in turn"), (storage, True, "in turn")])
        size = math.prod(to.aval.shape)
        each = f"for (int j = t; j < {size}; j += {self.threads})"
        self.put(f"if ({condition}) {each} {storage.name}[j] = {other.name}[j];")
        return [self._written(storage)]

    def on_each(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        """Writes what each thread computes by itself for each of its lanes, one after the other."""
        (block,), inputs, outputs = equation.blocks, equation.inputs, equation.outputs
        number = equation.params["num_shared"]
        buffers = [self._buffer(atom) for atom in inputs[:number] if atom.aval.shape]
        self._access_all([(storage, False, None) for storage in buffers])
        read = [self._read_alone(atom) for atom in inputs[:number]]
        results: list[Any] = [{} for _ in outputs]
        for layout in sorted(set().union(*(self.wanted[output] for output in outputs))):
            slots, lanes = self.slots(layout), []
            for atom in inputs[number:]:
                value, kind = self.get(atom, _like(atom, layout)), type_of(atom.aval.dtype)
                texts = [value(slot) for slot in slots]
                if len(set(texts)) > 1:
                    self.put(f"const {kind} {(name := self.name())}[] = {{{', '.join(texts)}}};")
                    texts = [f"{name}[s]"]
                lanes.append(number_of(texts[0], atom.aval.dtype))
            made = [self.name() for _ in outputs]
            for name, output in zip(made, outputs, strict=True):
                self.put(f"{type_of(output.aval.dtype)} {name}[{len(slots)}];")
            with self.within(f"for (int s = 0; s < {len(slots)}; s++)"):
                alone = Alone(self)
                alone.values.update(zip(equation.given, [*read, *lanes], strict=True))
                ends = [one.at(()) for one in alone.run(block)]
                for name, end in zip(made, ends, strict=True):
                    self.put(f"{name}[s] = {end};")
            for result, name in zip(results, made, strict=True):
                place = "0" if layout == UNIFORM else "{}"  # one number is asked for in any slot
                result[layout] = f"{name}[{place}]".format
        return results

    def _read_alone(self, atom: Any) -> Array:
        if not atom.aval.shape:
            return number_of(self.get(atom, UNIFORM)(0), atom.aval.dtype)
        storage = self._buffer(atom)
        self.uses[storage.name] += _USES_IN_LOOP ** (self._loops + 1)
        return stored(storage.name, atom.aval.shape, atom.aval.dtype)

    # Control flow.
    def on_cond(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        which, count = self.get(equation.inputs[0], UNIFORM)(0), len(equation.blocks)
        results, ends = self._variables(equation.outputs), []
        accesses, versions = self._accesses, self._versions
        after: Accesses = defaultdict(frozenset)
        last: Any = defaultdict(int)
        for number, block in enumerate(equation.blocks):
            self._accesses, self._versions = accesses.copy(), versions.copy()
            test = f"if ({which} == {number})" if number == 0 else f"else if ({which} == {number})"
            if count == 2:
                test = f"if (!{which})" if number == 0 else "else"
            elif number == count - 1:
                test = "else"
            with self.within(test):
                ends.append(self._assign_all(block, results))
            for storage, them in self._accesses.items():
                after[storage] |= them
            for storage, version in self._versions.items():
                last[storage] = max(last[storage], version)
        self._accesses, self._versions = after, last
        return self._parts(results, ends)

    def on_while(self, equation: Equation, layouts: list[Layout]) -> list[Any]:
        *tests, body = equation.blocks
        carried = self._variables(equation.given)
        starts: list[Any] = list(carried)
        written: set[_Storage] = set()
        for number, (atom, var) in enumerate(zip(equation.inputs, equation.given, strict=True)):
            if starts[number] is None:
                storage = self._buffer(atom)
                if body.outputs[number] is not var:
                    written.add(storage)
                    self._versions[storage] += 1  # what is outside is of the past from here on
                starts[number] = _Part(storage, self._versions[storage])
            for layout, variable in (carried[number] or {}).items():
                self.assign(layout, variable, self.get(atom, layout))
        self.known.update(zip(equation.given, starts, strict=True))
        before = self._accesses.copy()
        for storage in (*written, "scratch"):  # by the step before
            self._accesses[storage] |= {(True, _BEFORE), (False, _BEFORE)}
        head = "for (;;)" if tests else f"for (int j = 0; j < {equation.params['length']}; j++)"
        self._loops += 1
        with self.within(head):
            for test in tests:
                (goes_on,) = self.run(test)
                self.put(f"if (!{goes_on[UNIFORM](0)}) break;")
            tested = self._accesses.copy()  # where the loop ends
            ends = self._assign_all(body, carried)
        self._loops -= 1
        for storage, them in tested.items() if tests else ():
            self._accesses[storage] |= {one for one in them if one[1] != _BEFORE}
        for storage, them in before.items():
            self._accesses[storage] |= them
        return self._parts(carried, [starts, ends])

    on_scan = on_while

    def _variables(self, values: list[Var]) -> list[Any]:
        """Returns variables for values, by layout; None for buffers."""
        wanted = [(var.aval.dtype, sorted(self.wanted[var])) for var in values]
        return [
            None if MEMORY in layouts else {one: self.variable(dtype, one) for one in layouts}
            for dtype, layouts in wanted
        ]

    def _assign_all(self, block: Block, to: list[Any]) -> list[Any]:
        """Writes a block, and the assignment of its outputs to variables; returns the outputs."""
        outputs, fresh = self.run(block), []
        for atom, output, variables in zip(block.outputs, outputs, to, strict=True):
            if variables is None:
                self._buffer(atom)  # as it is now
            for layout, variable in (variables or {}).items():
                value = self.in_layout(atom, output, layout)
                if value(0) != variable(0):
                    # What is carried may be another variable, which is about to change.
                    is_number = isinstance(atom, Literal)
                    own = value if is_number else self.define(atom.aval.dtype, layout, value)
                    fresh.append((layout, variable, own))
        for layout, variable, value in fresh:
            self.assign(layout, variable, value)
        return outputs

    def _parts(self, results: list[Any], of_blocks: list[list[Any]]) -> list[Any]:
        """Returns results, with buffers, the same ones in all blocks, as they are now."""
        for number, result in enumerate(results):
            if result is None:
                storage, *others = {ends[number].storage for ends in of_blocks}
                if others:
                    raise Unportable(_REPLACES)
                results[number] = _Part(storage, self._versions[storage])
        return results


def _formatted(text: str, values: list[Value]) -> Value:
    return lambda slot: text.format(*(value(slot) for value in values))


def _joined(op: str, values: list[str]) -> str:
    """Returns the values reduced to one, half upon half."""
    while len(values) > 1:
        half = len(values) // 2
        pairs = zip(values[:half], values[half:], strict=True)
        values = [f"{op}::of({first}, {second})" for first, second in pairs]
    return values[0]


# -- Kernels --------------------------------------------------------------------------------------
class Code(NamedTuple):
    """C++ and how it is to be launched.

    Attributes:
      source: of a function `kernel`.
      threads: of a block.
      shared: bytes of shared memory that a block is to be given.
    """

    source: str
    threads: int
    shared: int


def emit(program: ClosedJaxpr, groups: tuple[int, ...], num_warps: int, room: int = 0) -> Code:
    """Returns the C++ of a kernel.

    Args:
      program: as `trace` returns it.
      groups: of each operand, how many programs next to one another read the same row of it; 0 for
        all programs, where the operand has no axis of programs.
      num_warps: of a program, a power of two.
      room: bytes of shared memory of a program, for the arrays that it touches most.
    """
    arguments = [Var(aval) for aval in program.in_avals]
    block = block_of(program, arguments)
    threads = num_warps * LANES
    emitter = Emitter(threads)
    wanted = [{MEMORY if aval.shape else UNIFORM} for aval in program.out_avals]
    demand(block, wanted, emitter.wanted)
    first = len(arguments) - len(block.outputs)  # of what is carried
    storages: dict[int, _Storage] = {}
    for number, var in enumerate(arguments):
        if MEMORY in emitter.wanted[var]:
            storages[number] = _Storage(f"b{number}", var.aval, number < first)
            emitter.known[var] = _Part(storages[number], 0)
        elif emitter.wanted[var]:
            emitter.known[var] = {UNIFORM: lambda slot, name=f"s{number}": name}
    results = emitter.run(block)
    for number, result in enumerate(results, first):
        if arguments[number].shape:
            if not isinstance(result, _Part) or result.storage is not storages[number]:
                raise Unportable(_REPLACES)
            emitter._buffer(block.outputs[number - first])
        elif (value := result[UNIFORM](0)) != f"s{number}":
            emitter.put(f"if (t == 0) a{number}[program] = {value};")
    emitter.put("")
    carried = {number: one for number, one in storages.items() if number >= first}
    held = _most_used(emitter.uses, carried, room - _EXCHANGE - emitter.scratch)
    head, tail, offset = [], [], 0
    for number, (var, group) in enumerate(zip(arguments, groups, strict=True)):
        kind, size = type_of(var.aval.dtype), math.prod(var.shape)
        row = "0" if not group else "program" if group == 1 else f"program / {group}"
        if number not in storages:
            if emitter.wanted[var]:
                head.append(f"const {kind} s{number} = a{number}[{row}];")
            continue
        place = f"a{number}" + (f" + (int64_t)({row}) * {size}" if group else "")
        if number not in held:
            constant = "const " if number < first else ""
            head.append(f"{constant}{kind}* const b{number} = {place};")
            continue
        each = f"for (int j = t; j < {size}; j += {threads})"
        head.append(f"{kind}* const g{number} = {place};")
        head.append(f"{kind}* const b{number} = ({kind}*)(held + {offset});")
        head.append(f"{each} b{number}[j] = g{number}[j];")
        tail.append(f"{each} g{number}[j] = b{number}[j];")
        offset += _room_of(var.aval)
    if held:
        head.append("BARRIER;")
        tail.insert(0, "BARRIER;")
    inputs = ", ".join(
        f"{'const ' if number < first else ''}{type_of(var.aval.dtype)}*"
        f"{' __restrict__' if number < first else ''} a{number}"
        for number, var in enumerate(arguments)
    )
    lines = _opening(inputs, len(block.outputs), threads, emitter.scratch)
    source = "\n".join([HEADER, *lines, *head, *emitter.lines, *tail, "}", "}", ""])
    return Code(source, threads, offset)


def _room_of(aval: Any) -> int:
    return -(-math.prod(aval.shape) * aval.dtype.itemsize // 16) * 16


def _most_used(uses: dict[str, int], carried: dict[int, _Storage], room: int) -> set[int]:
    """Returns which of the carried arrays to hold in shared memory: those most used for a byte."""
    chosen: set[int] = set()

    def gain(number: int) -> float:
        return uses[carried[number].name] / _room_of(carried[number].aval)

    for number in sorted(carried, key=gain, reverse=True):
        size = _room_of(carried[number].aval)
        if size <= room and gain(number):
            chosen.add(number)
            room -= size
    return chosen


def _opening(inputs: str, num_outputs: int, threads: int, scratch: int) -> list[str]:
    outputs = "".join(f", void* o{number}" for number in range(num_outputs))
    lines = [
        f"#define BARRIER {'__syncwarp()' if threads == LANES else '__syncthreads()'}",
        f'extern "C" __global__ void __launch_bounds__({threads}) kernel({inputs}{outputs}) {{',
        # The remainder tells the compiler in which range it is.
        f"const int t = threadIdx.x % {threads}, program = blockIdx.x;",
        "extern __shared__ __align__(16) unsigned char held[];",
        "int turn = 0;",
    ]
    is_one_warp, room = threads == LANES, "__shared__ __align__(8) unsigned char"
    lines.append("void* const exchange = 0;" if is_one_warp else f"{room} exchange[{_EXCHANGE}];")
    return lines + ([f"{room} scratch[{scratch}];"] if scratch else [])
