# pyright: basic
"""A traced program as CUDA C++: a block of threads per program, no device needed.

A value of one element is computed by every thread. The entries of any other are dealt out in turn:
thread t has entries t, t + T, t + 2 T, ... of T threads, each in a slot of its own, in registers.
Where there are fewer entries than threads, several threads have the same one.
Before threads read what others wrote, or write what others read, stands a barrier: each access is
compared with those since the last one (`_access`), so that portable code needs none of its own.
"""

import contextlib
import dataclasses
import functools
import itertools
import math
import pathlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import Literal

from jaxopt_search.backends.backend import LANES
from jaxopt_search.backends.cuda.alone import Alone, Array, number_of, stored
from jaxopt_search.backends.cuda.operations import (
    ELEMENTWISE,
    REDUCTIONS,
    UNLIKE,
    VIEWS,
    Block,
    Equation,
    Var,
    block_of,
    literal,
    type_of,
)
from jaxopt_search.backends.cuda.trace import Program, Unportable

HEADER = (pathlib.Path(__file__).parent / "header.h").read_text()
BARRIER_AFTER_WRITES = False
"""Whether none is left out: set it before a kernel is made, to find out if a barrier is missing."""
_EXCHANGE = 512  # bytes for what warps have found
_USES_IN_LOOP = 8  # of a line in a loop, for one outside


class Layout(NamedTuple):
    """How entries are dealt out: as if each stood `repeat` times in a row."""

    count: int
    repeat: int = 1


UNIFORM, MEMORY = Layout(1), Layout(0)
Value = Callable[[int], str]
"""Maps a slot to the C++ of what is in it."""


def natural(atom: Any) -> Layout:
    """Returns the layout in which an array is computed if nothing else is asked for."""
    return Layout(math.prod(atom.aval.shape))


def _squeezed(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


# -- Which layouts are needed ---------------------------------------------------------------------
def demand(block: Block) -> None:
    """Notes the layouts in which values are needed for those in which the outputs are."""
    wanted = block.wanted
    for equation in reversed(block.equations):
        outs = [wanted[output] for output in equation.outputs]
        if any(outs):
            for atom, layouts in zip(equation.inputs, _wants(equation, outs), strict=True):
                if isinstance(atom, Var):
                    wanted[atom] |= layouts


def _demand_of(block: Block, of_outputs: list[set[Layout]]) -> list[set[Layout]]:
    """Returns the layouts in which a block needs its inputs."""
    for output, layouts in zip(block.outputs, of_outputs, strict=True):
        if isinstance(output, Var):
            block.wanted[output] |= layouts
    demand(block)
    return [block.wanted[var] for var in block.inputs]


def _wants(equation: Equation, outs: list[set[Layout]]) -> list[set[Layout]]:
    """Returns the layouts in which the operands are needed."""
    name, inputs = equation.name, equation.inputs
    naturals = [{natural(atom)} for atom in inputs]
    match name:
        case "load":
            return [{MEMORY}, *({_like(a, layout) for layout in outs[0]} for a in inputs[1:])]
        case "store":
            return [{MEMORY}, *naturals[1:]]
        case "copy" if len(inputs) == 3:
            return [{MEMORY}, {MEMORY}, {UNIFORM}]
        case "settled":
            return [{MEMORY}]
        case "each":
            number, layouts = equation.params["num_shared"], set().union(*outs)
            read = [{MEMORY if atom.aval.shape else UNIFORM} for atom in inputs[:number]]
            return [*read, *({_like(a, one) for one in layouts} for a in inputs[number:])]
        case "cond":
            of_branches = [_demand_of(block, outs) for block in equation.blocks]
            return [{UNIFORM}, *(set().union(*each) for each in zip(*of_branches, strict=True))]
        case "while" | "scan":
            return _wants_of_loop(equation, outs)
    to = equation.outputs[0].shape
    if name in VIEWS or name in REDUCTIONS:
        is_view = _squeezed(inputs[0].aval.shape) == _squeezed(to)
        return [{_like(inputs[0], layout) for layout in outs[0]}] if is_view else naturals
    if name in ELEMENTWISE or name in UNLIKE or name == "broadcast_in_dim":
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
    return Layout(*to) if shape[0] != 1 else Layout(to[1])


def _wants_of_loop(equation: Equation, outs: list[set[Layout]]) -> list[set[Layout]]:
    """Returns the layouts that a loop needs; what it carries it carries in each of them."""
    loop = _Loop.of(equation)
    carried = [set(one) for one in outs]
    while True:
        inside = _demand_of(loop.body, carried)
        of_test = _demand_of(loop.test, [{UNIFORM}]) if loop.test else []
        needed = inside[len(loop.constants) :]
        if loop.test:
            pairs = zip(needed, of_test[len(loop.test_constants) :], strict=True)
            needed = [a | b for a, b in pairs]
        more = [a | b for a, b in zip(carried, needed, strict=True)]
        if more == carried:
            break
        carried = more
    before = of_test[: len(loop.test_constants)]
    return [*before, *inside[: len(loop.constants)], *carried]


class _Loop(NamedTuple):
    """The parts of a `while` or `scan`; `length` instead of a test for the latter."""

    test: Block | None
    body: Block
    test_constants: list[Any]
    constants: list[Any]
    carried: list[Any]
    length: int

    @classmethod
    def of(cls, equation: Equation) -> "_Loop":
        params, inputs = equation.params, equation.inputs
        if equation.name == "scan":
            (body,) = equation.blocks
            number = len(inputs) - len(equation.outputs)  # of constants, if it is over no arrays
            ours, bodys = (*inputs, *equation.outputs), (*body.inputs, *body.outputs)
            if any(a.aval.shape != b.aval.shape for a, b in zip(ours, bodys, strict=True)):
                raise Unportable("uses scan over arrays")
            return cls(None, body, [], inputs[:number], inputs[number:], params["length"])
        test, body = equation.blocks
        first, second = params["cond_nconsts"], params["body_nconsts"]
        ends = first, first + second
        return cls(test, body, inputs[: ends[0]], inputs[ends[0] : ends[1]], inputs[ends[1] :], 0)


def _unwritten(block: Block, atom: Any) -> Any:
    """Returns the input of a block that a buffer is, if the block never writes to it; else None."""
    made = {output: eqn for eqn in block.equations for output in eqn.outputs}
    while (equation := made.get(atom)) is not None:
        number = equation.outputs.index(atom)
        if equation.name == "cond":
            inner, operands = equation.blocks, equation.inputs[1:]
            found = {_unwritten(block, block.outputs[number]) for block in inner}
            places = {
                block.inputs.index(var) for block in inner for var in found if var in block.inputs
            }
            if None in found or len(places) != 1:
                return None
            atom = operands[places.pop()]
        elif equation.name in ("while", "scan"):
            loop = _Loop.of(equation)
            own = loop.body.inputs[len(loop.constants) + number]
            if _unwritten(loop.body, loop.body.outputs[number]) is not own:
                return None
            atom = loop.carried[number]
        else:
            return None
    return atom


# -- C++ ------------------------------------------------------------------------------------------
@dataclasses.dataclass(eq=False)
class _Storage:
    """An array in memory.

    Attributes:
      version: how often it was written so far, by which reads of what is no more are found.
    """

    name: str
    aval: Any
    is_constant: bool
    version: int = 0


class _Part(NamedTuple):
    """A buffer as it is after some writes."""

    storage: _Storage
    version: int


class Emitter:
    """Writes C++ for a block of a program.

    Attributes:
      threads: T.
      lines: what is written so far.
      scratch: bytes through which threads exchange values.
      uses: of each array in memory, a guess of how often it is touched.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.lines: list[str] = []
        self.depth = 1
        self.scratch = 0
        self._number, self._numbers = 0, itertools.count()
        self._slots, self._in_slots = range(0), []  # lines that are yet to be written for each slot
        self._accesses: dict[Any, set[tuple[bool, Any]]] = defaultdict(set)
        self._loops = 0  # around the code that is written
        self.uses: dict[Any, int] = defaultdict(int)

    # Layouts.
    def slots(self, layout: Layout) -> range:
        count, repeat = layout
        if count & (count - 1):
            raise Unportable(f"has {count} lanes, expected a power of two, as `memory.lanes` has")
        each = count if repeat >= self.threads else max(1, count * repeat // self.threads)
        return range(each)

    def entry(self, layout: Layout, slot: int) -> str:
        """Returns the number of the entry in a slot."""
        count, repeat = layout
        total, threads = count * repeat, self.threads
        if repeat >= threads:
            return str(slot)
        place = f"(t % {total})" if total < threads else f"(t + {slot * threads})"
        return place if repeat == 1 else f"({place} / {repeat})"

    def owner(self, layout: Layout) -> str:
        """Returns whether a thread is the one among those that have an entry; "" for always."""
        (count, repeat), threads = layout, self.threads
        if repeat >= threads:
            return "t == 0"
        parts = [f"t < {count * repeat}"] if count * repeat < threads else []
        return " && ".join(parts + ([f"t % {repeat} == 0"] if repeat > 1 else []))

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

    def name(self) -> str:
        self._number += 1
        return f"v{self._number}"

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
        if isinstance(storage, _Storage):
            self.uses[storage.name] += _USES_IN_LOOP**self._loops
            if storage.is_constant:
                return
        for was_write, other in self._accesses[storage]:
            if (is_write or was_write) and (key is None or key != other):
                self.barrier()
                break
        self._accesses[storage].add((is_write, key))

    def _key(self, index: Any, layout: Layout) -> Any:
        is_dealt_out_once = layout.repeat == 1 and not self.owner(layout)
        return (index, layout) if is_dealt_out_once and isinstance(index, Var) else None

    # Values.
    def get(self, known: dict[Any, Any], atom: Any, layout: Layout) -> Value:
        return self.in_layout(atom, self._known(known, atom), layout)

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
    def run(self, block: Block, arguments: list[Any]) -> list[Any]:
        """Writes a block, and returns its outputs: of each, what is known of it."""
        known: dict[Any, Any] = dict(zip(block.inputs, arguments, strict=True))
        for equation in block.equations:
            wanted = [block.wanted[output] for output in equation.outputs]
            if any(wanted):
                try:
                    results = self.equation(known, equation, wanted)
                    for output, result, layouts in zip(
                        equation.outputs, results, wanted, strict=True
                    ):
                        if isinstance(result, dict):  # while it can be seen from everywhere
                            result |= {one: self.in_layout(output, result, one) for one in layouts}
                except Unportable as error:
                    raise error.at(equation.origins) from None
                known.update(zip(equation.outputs, results, strict=True))
        return [self._known(known, atom) for atom in block.outputs]

    def equation(self, known: Any, equation: Equation, wanted: list[set[Layout]]) -> list[Any]:
        """Writes an equation; returns of each result, by layout, the value, or the buffer."""
        name, inputs = equation.name, equation.inputs
        if name == "copy" and len(inputs) == 3:  # ours; JAX's has one operand
            return [self.copy(known, equation)]
        handler = getattr(self, f"on_{name}", None)
        if handler is not None:
            return handler(known, equation, wanted)
        if name not in ELEMENTWISE and name not in UNLIKE:
            raise Unportable(f"uses {name}, which a fused kernel cannot")
        (output,) = equation.outputs
        text = ELEMENTWISE.get(name) or UNLIKE[name](equation)
        results = {}
        for layout in wanted[0]:
            values = [self.operand(known, equation, i, layout) for i in range(len(inputs))]
            results[layout] = self.define(output.aval.dtype, layout, _formatted(text, values))
        return [results]

    def on_iota(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        (output,), params = equation.outputs, equation.params
        shape = output.shape
        size, inner = shape[params["dimension"]], math.prod(shape[params["dimension"] + 1 :])
        kind = type_of(output.aval.dtype)

        def at(layout: Layout) -> Value:
            return lambda slot: f"({kind})({self.entry(layout, slot)} / {inner} % {size})"

        return [{layout: at(layout) for layout in wanted[0]}]

    def on_broadcast_in_dim(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        return [{layout: self.operand(known, equation, 0, layout) for layout in wanted[0]}]

    def operand(self, known: Any, equation: Equation, number: int, layout: Layout) -> Value:
        """Returns an operand by the slots of a result in a layout."""
        shape, to = _expanded(equation, number), equation.outputs[0].shape
        before = _before(shape, to, layout)
        value = self.get(known, equation.inputs[number], before)
        if before in (UNIFORM, layout) and _squeezed(shape) in ((), _squeezed(to)):
            return value
        parts = max(1, to[1] // self.threads)  # slots of a row
        if shape[0] == 1:
            return lambda slot: value(slot % parts)
        return lambda slot: value(slot // parts)

    def on_reshape(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        (atom,), (output,) = equation.inputs[:1], equation.outputs
        if _squeezed(atom.aval.shape) == _squeezed(output.shape):
            return [{one: self.get(known, atom, _like(atom, one)) for one in wanted[0]}]
        return [{natural(atom): self.get(known, atom, natural(atom))}]

    on_squeeze = on_expand_dims = on_reshape

    # Reductions.
    def _meet(self, size: int) -> int:
        """Returns how many threads share a reduction; several warps wait for one another in it."""
        group = min(size, self.threads)
        if group > LANES:
            self._close()
            self._accesses.clear()
        return group

    def _reduced(self, dtype: Any, op: str, group: int, value: str) -> str:
        own = f"({type_of(dtype)})({value})"
        return f"reduce<{op}, {group}>({own}, t, exchange, turn)" if group > 1 else value

    def on_reduce(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        (atom,), (output,) = equation.inputs, equation.outputs
        op, dtype = REDUCTIONS[equation.name], output.aval.dtype
        shape, axes = atom.aval.shape, equation.params["axes"]
        kept = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        if math.prod(kept) == math.prod(shape):  # over axes of one element
            return [{one: self.get(known, atom, _like(atom, one)) for one in wanted[0]}]
        layout = natural(atom)
        value = self.get(known, atom, layout)
        if math.prod(kept) == 1:
            return [{UNIFORM: self._all_reduced(dtype, op, layout, value)}]
        if len(shape) == 2 and axes == (1,):
            return [{Layout(*shape): self._rows_reduced(dtype, op, shape, value)}]
        if len(shape) == 2 and axes == (0,):
            height, width = shape
            read = self.exchanged(dtype, layout, value)
            total = self.variable(dtype, Layout(width))
            for slot in self.slots(Layout(width)):
                entry, own = self.entry(Layout(width), slot), total(slot)
                self.put(f"{own} = {read(entry)};")
                step = f"{own} = {op}::of({own}, {read(f'{entry} + row * {width}')});"
                self.put(f"for (int row = 1; row < {height}; row++) {step}")
            return [{Layout(width): total}]
        raise Unportable(f"uses {equation.name} over axes {axes} of shape {shape}")

    on_reduce_min = on_reduce_max = on_reduce_sum = on_reduce_prod = on_reduce
    on_reduce_and = on_reduce_or = on_reduce_xor = on_reduce

    def _all_reduced(self, dtype: Any, op: str, layout: Layout, value: Value) -> Value:
        own = _joined(op, [value(slot) for slot in self.slots(layout)])
        group = self._meet(layout.count)
        return self.define(dtype, UNIFORM, lambda slot: self._reduced(dtype, op, group, own))

    def _rows_reduced(self, dtype: Any, op: str, shape: tuple[int, int], value: Value) -> Value:
        layout, (_, width) = Layout(*shape), shape
        parts, group = max(1, width // self.threads), self._meet(width)  # slots of a row

        def of_row(slot: int) -> str:
            own = _joined(op, [value(slot * parts + part) for part in range(parts)])
            return self._reduced(dtype, op, group, own)

        return self.define(dtype, layout, of_row)

    def on_cumsum(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        (atom,), (output,), params = equation.inputs, equation.outputs, equation.params
        shape, dtype, layout = atom.aval.shape, output.aval.dtype, natural(atom)
        if params["axis"] != len(shape) - 1 or params["reverse"]:
            raise Unportable("uses cumsum over another axis than the last, or backwards")
        value, width = self.get(known, atom, layout), shape[-1]
        parts, group = max(1, width // self.threads), self._meet(width)  # slots of a row
        total = self._named(layout)
        for slot in self.slots(layout):
            own = f"scan<{group}>({value(slot)}, t, exchange, turn)"
            if slot % parts:  # what stands before: the last one of the slot before
                own = f"add({self.name()}, {own})"
                before = f"last<{group}>({total(slot - 1)}, t, exchange, turn)"
                self.put(f"const {type_of(dtype)} v{self._number} = {before};")
            self.put(f"const {type_of(dtype)} {total(slot)} = {own};")
        return [{layout: total}]

    def on_argmin(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        (atom,), (output,) = equation.inputs, equation.outputs
        if len(_squeezed(atom.aval.shape)) != 1 or len(atom.aval.shape) != 1:
            raise Unportable(f"uses {equation.name} over one axis of several")
        op, layout = {"argmin": "Min", "argmax": "Max"}[equation.name], natural(atom)
        value, dtype = self.get(known, atom, layout), output.aval.dtype
        best = self._all_reduced(atom.aval.dtype, op, layout, value)(0)
        kind, beyond = type_of(dtype), layout.count

        def place(slot: int) -> str:
            own = value(slot)
            is_best = f"{own} == {best} || ({own} != {own} && {best} != {best})"
            return f"({kind})({is_best} ? {self.entry(layout, slot)} : {beyond})"

        places = self.define(dtype, layout, place)
        return [{UNIFORM: self._all_reduced(dtype, "Min", layout, places)}]

    on_argmax = on_argmin

    def on_pick(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        values, lane = equation.inputs
        dtype, layout = values.aval.dtype, natural(values)
        value, lane = self.get(known, values, layout), self.get(known, lane, UNIFORM)(0)
        if self.threads > LANES < layout.count:
            text = self.exchanged(dtype, layout, value)(lane)
        else:
            own = value(0)
            for slot in self.slots(layout)[1:]:
                own = f"({lane} / {LANES} == {slot} ? {value(slot)} : {own})"
            text = f"from_lane({own}, {lane} % {LANES})"
        return [{UNIFORM: self.define(dtype, UNIFORM, lambda slot: text)}]

    def on_slice(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        (atom,), (output,), params = equation.inputs, equation.outputs, equation.params
        shape, layout = atom.aval.shape, natural(atom)
        if params["strides"] is not None and set(params["strides"]) != {1}:
            raise Unportable("uses slices with strides")
        value, dtype = self.get(known, atom, layout), output.aval.dtype
        read = self.exchanged(dtype, layout, value)
        starts, sizes = params["start_indices"], output.shape

        def entry(own: str) -> str:
            """Returns the entry of the whole of an entry of the part."""
            terms, inner, own_inner = [], 1, 1
            for axis in reversed(range(len(shape))):
                place = f"({own}) / {own_inner} % {sizes[axis]} + {starts[axis]}"
                terms.append(f"({place}) * {inner}")
                inner, own_inner = inner * shape[axis], own_inner * sizes[axis]
            return " + ".join(terms)

        def at(layout: Layout) -> Value:
            return self.define(dtype, layout, lambda slot: read(entry(self.entry(layout, slot))))

        return [{layout: at(layout) for layout in wanted[0]}]

    # Memory.
    def _buffer(self, known: Any, atom: Any) -> _Storage:
        storage, version = known[atom]
        if version != storage.version:
            raise Unportable("reads a buffer as it was before a write to it")
        return storage

    def on_load(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        buffer, index, *masks = equation.inputs
        storage, dtype = self._buffer(known, buffer), equation.outputs[0].aval.dtype
        results = {}
        for layout in wanted[0]:
            parts = [self.get(known, atom, _like(atom, layout)) for atom in (index, *masks)]
            self._access(storage, False, self._key(index, layout))

            def at(slot: int, parts: Any = parts) -> str:
                text = f"{storage.name}[{parts[0](slot)}]"
                nothing = f"({type_of(dtype)})0"
                return text if len(parts) == 1 else f"({parts[1](slot)} ? {text} : {nothing})"

            results[layout] = self.define(dtype, layout, at)
        return [results]

    def on_settled(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        storage = self._buffer(known, equation.inputs[0])
        self._access(storage, False, None)
        return [_Part(_Storage(storage.name, storage.aval, is_constant=True), 0)]

    def on_store(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        buffer, *rest = equation.inputs
        layout, storage = natural(rest[0]), self._buffer(known, buffer)
        index, value, where = (self.get(known, atom, _like(atom, layout)) for atom in rest)
        is_one = layout == UNIFORM
        self._access(storage, True, "one" if is_one else self._key(rest[0], layout))
        owner = "t == 0" if is_one else self.owner(layout)

        def line(slot: int) -> str:
            conditions = [part for part in (owner, where(slot)) if part not in ("", "true")]
            condition = f"if ({' && '.join(conditions)}) " if conditions else ""
            return f"{condition}{storage.name}[{index(slot)}] = {value(slot)};"

        self.put_in_slots(self.slots(layout), line)
        return [self._written(storage)]

    def _written(self, storage: _Storage) -> _Part:
        if BARRIER_AFTER_WRITES:
            self.barrier()
        storage.version += 1
        return _Part(storage, storage.version)

    def copy(self, known: Any, equation: Equation) -> _Part:
        to, source, where = equation.inputs
        storage, other = self._buffer(known, to), self._buffer(known, source)
        condition = self.get(known, where, UNIFORM)(0)
        self._access(other, False, "in turn")
        self._access(storage, True, "in turn")
        size = math.prod(to.aval.shape)
        each = f"for (int j = t; j < {size}; j += {self.threads})"
        self.put(f"if ({condition}) {each} {storage.name}[j] = {other.name}[j];")
        return self._written(storage)

    def on_each(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        """Writes what each thread computes by itself for each of its lanes, one after the other."""
        (block,), inputs, outputs = equation.blocks, equation.inputs, equation.outputs
        number = equation.params["num_shared"]
        read = [self._read_alone(known, atom) for atom in inputs[:number]]
        results: list[Any] = [{} for _ in outputs]
        for layout in set().union(*wanted):
            slots, lanes = self.slots(layout), []
            for atom in inputs[number:]:
                value, kind = self.get(known, atom, _like(atom, layout)), type_of(atom.aval.dtype)
                texts = [value(slot) for slot in slots]
                if len(set(texts)) > 1:
                    self.put(f"const {kind} {(name := self.name())}[] = {{{', '.join(texts)}}};")
                    texts = [f"{name}[s]"]
                lanes.append(number_of(texts[0], atom.aval.dtype))
            made = [self.name() for _ in outputs]
            for name, output in zip(made, outputs, strict=True):
                self.put(f"{type_of(output.aval.dtype)} {name}[{len(slots)}];")
            with self.within(f"for (int s = 0; s < {len(slots)}; s++)"):
                alone = Alone(self._numbers)
                ends = [one.at(()) for one in alone.run(block, [*read, *lanes])]
                for line in alone.lines:
                    self.put(line)
                for name, end in zip(made, ends, strict=True):
                    self.put(f"{name}[s] = {end};")
            for result, name in zip(results, made, strict=True):
                result[layout] = functools.partial("{}[{}]".format, name)
        return results

    def _read_alone(self, known: Any, atom: Any) -> Array:
        if not atom.aval.shape:
            return number_of(self.get(known, atom, UNIFORM)(0), atom.aval.dtype)
        storage = self._buffer(known, atom)
        self._access(storage, False, None)
        self.uses[storage.name] += _USES_IN_LOOP ** (self._loops + 1)
        return stored(storage.name, atom.aval.shape, atom.aval.dtype)

    # Control flow.
    def on_cond(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        which, *operands = equation.inputs
        which = self.get(known, which, UNIFORM)(0)
        results = self._variables(equation.outputs, wanted)
        before = {name: set(them) for name, them in self._accesses.items()}
        after: dict[Any, set[Any]] = defaultdict(set)
        arguments = [self._known(known, atom) for atom in operands]
        versions = {part.storage: part.version for part in arguments if isinstance(part, _Part)}
        last, ends = {}, []
        count = len(equation.blocks)
        for number, block in enumerate(equation.blocks):
            self._accesses = defaultdict(set, {name: set(them) for name, them in before.items()})
            for storage, version in versions.items():
                storage.version = version
            test = f"if ({which} == {number})" if number == 0 else f"else if ({which} == {number})"
            if count == 2:
                test = f"if (!{which})" if number == 0 else "else"
            elif number == count - 1:
                test = "else"
            with self.within(test):
                ends.append(self._assign_all(block, arguments, results, wanted, equation))
            for name, them in self._accesses.items():
                after[name] |= them
            for storage in versions:
                last[storage] = max(last.get(storage, 0), storage.version)
        self._accesses = after
        for storage, version in last.items():
            storage.version = version
        return self._parts(results, ends)

    def _parts(self, results: list[Any], ends: list[list[Any]]) -> list[Any]:
        """Returns results, with buffers as they are now."""
        for number, result in enumerate(results):
            if result is None:
                storages = {end[number].storage for end in ends}
                if len(storages) > 1:
                    raise Unportable("replaces a buffer, expected the one that `store` returns")
                (storage,) = storages
                results[number] = _Part(storage, storage.version)
        return results

    def _variables(self, outputs: list[Var], wanted: list[set[Layout]]) -> list[Any]:
        """Returns variables for results, by layout; None for buffers."""
        return [
            None
            if MEMORY in layouts
            else {layout: self.variable(output.aval.dtype, layout) for layout in sorted(layouts)}
            for output, layouts in zip(outputs, wanted, strict=True)
        ]

    def _known(self, known: Any, atom: Any) -> Any:
        """Returns what is known of a value: itself by layout, or the buffer."""
        if isinstance(atom, Literal):
            aval: Any = atom.aval
            text = literal(atom.val, aval.dtype)
            return {UNIFORM: lambda slot: text}
        return known.get(atom)

    def _assign_all(
        self, block: Block, arguments: Any, to: list[Any], wanted: Any, equation: Equation
    ) -> list[Any]:
        """Writes a block, and the assignment of its outputs to variables; returns the outputs."""
        outputs = self.run(block, arguments)
        fresh = []
        for atom, output, variables in zip(block.outputs, outputs, to, strict=True):
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

    def on_while(self, known: Any, equation: Equation, wanted: Any) -> list[Any]:
        loop = _Loop.of(equation)
        inside = loop.body.inputs[len(loop.constants) :]
        layouts = [loop.body.wanted[var] | one for var, one in zip(inside, wanted, strict=True)]
        if loop.test:
            of_test = loop.test.inputs[len(loop.test_constants) :]
            pairs = zip(layouts, of_test, strict=True)
            layouts = [one | loop.test.wanted[var] for one, var in pairs]
        carried = self._variables(equation.outputs, layouts)
        start = [self._known(known, atom) for atom in loop.carried]
        written: set[_Storage] = set()
        for number, (atom, variables) in enumerate(zip(loop.carried, carried, strict=True)):
            if variables is None:
                storage = self._buffer(known, atom)
                if _unwritten(loop.body, loop.body.outputs[number]) is not inside[number]:
                    written.add(storage)
                    storage.version += 1  # what is outside is of the past from the first write on
                carried[number] = _Part(storage, storage.version)
            for layout, variable in variables.items() if variables else ():
                self.assign(layout, variable, self.in_layout(atom, start[number], layout))
        variables = [None if isinstance(one, _Part) else one for one in carried]
        before = {name: set(them) for name, them in self._accesses.items()}
        for storage in (*written, "scratch"):  # by the step before
            self._accesses[storage] |= {(True, None), (False, None)}
        head = f"for (int j = 0; j < {loop.length}; j++)" if loop.test is None else "for (;;)"
        self._loops += 1
        with self.within(head):
            if loop.test is not None:
                constants = [self._known(known, atom) for atom in loop.test_constants]
                (goes_on,) = self.run(loop.test, [*constants, *carried])
                self.put(f"if (!{goes_on[UNIFORM](0)}) break;")
            constants = [self._known(known, atom) for atom in loop.constants]
            ends = self._assign_all(loop.body, [*constants, *carried], variables, layouts, equation)
        self._loops -= 1
        for name, them in before.items():
            self._accesses[name] |= them
        return self._parts(variables, [ends])

    on_scan = on_while


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


def emit(program: Program, groups: tuple[int, ...], num_warps: int, room: int = 0) -> Code:
    """Returns the C++ of a kernel.

    Args:
      program: what is to run.
      groups: of each operand, how many programs next to one another read the same row of it; 0 for
        all programs, where the operand has no axis of programs.
      num_warps: of a program, a power of two.
      room: bytes of shared memory of a program, for the arrays that it touches most.
    """
    block = block_of(program.jaxpr)
    for output, is_buffer in zip(block.outputs, program.is_buffer, strict=True):
        if isinstance(output, Var):
            block.wanted[output].add(MEMORY if is_buffer else UNIFORM)
    demand(block)
    threads = num_warps * LANES
    emitter = Emitter(threads)
    first = len(block.inputs) - len(block.outputs)  # of what is carried
    arguments = [_argument(number, var, block, first) for number, var in enumerate(block.inputs)]
    storages = [part.storage if isinstance(part, _Part) else None for part in arguments]
    results = emitter.run(block, arguments)
    for number, result in enumerate(results, first):
        if program.is_buffer[number - first]:
            if not isinstance(result, _Part) or result.storage is not storages[number]:
                raise Unportable("replaces a buffer, expected the one that `store` returns")
        elif (value := result[UNIFORM](0)) != f"s{number}":
            emitter.put(f"if (t == 0) a{number}[program] = {value};")
    emitter.put("")
    held = _most_used(emitter, storages, first, room - _EXCHANGE - emitter.scratch)
    head, tail, offset = [], [], 0
    for number, (var, group) in enumerate(zip(block.inputs, groups, strict=True)):
        kind, size = type_of(var.aval.dtype), math.prod(var.shape)
        row = "0" if not group else "program" if group == 1 else f"program / {group}"
        if storages[number] is None:
            if block.wanted[var]:
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
        for number, var in enumerate(block.inputs)
    )
    lines = _opening(inputs, len(block.outputs), threads, emitter.scratch)
    source = "\n".join([HEADER, *lines, *head, *emitter.lines, *tail, "}", "}", ""])
    return Code(source, threads, offset)


def _argument(number: int, var: Var, block: Block, first: int) -> Any:
    """Returns what is known of an operand: a buffer, a number, or nothing if it is not needed."""
    if MEMORY in block.wanted[var]:
        return _Part(_Storage(f"b{number}", var.aval, number < first), 0)
    return {UNIFORM: lambda slot: f"s{number}"} if block.wanted[var] else None


def _room_of(aval: Any) -> int:
    return -(-math.prod(aval.shape) * aval.dtype.itemsize // 16) * 16


def _most_used(emitter: Emitter, storages: list[Any], first: int, room: int) -> set[int]:
    """Returns which of the carried arrays to hold in shared memory: those most used for a byte."""
    chosen: set[int] = set()

    def gain(number: int) -> float:
        return emitter.uses[f"b{number}"] / _room_of(storages[number].aval)

    carried = [number for number in range(first, len(storages)) if storages[number] is not None]
    for number in sorted(carried, key=gain, reverse=True):
        if (size := _room_of(storages[number].aval)) <= room and emitter.uses[
            storages[number].name
        ]:
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
