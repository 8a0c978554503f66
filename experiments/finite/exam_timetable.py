"""Exams into time slots without a clash: a problem of one's own, solved by FANG."""

import jax
import jax.numpy as jnp

import jaxopt_search as js

EXAMS, SLOTS = 40, 8
chance = jax.random.uniform(jax.random.key(0), (EXAMS, EXAMS))
clashes = (chance + chance.T < 0.9).astype(jnp.int32)  # 1: some student takes both


@jax.tree_util.register_static
class FewClashes(js.successors.LocalHeuristic):
    num_variables, max_possibilities, is_portable = EXAMS, SLOTS, True

    def rate(self, clashes, slots, exam, slot):  # the exams there with which this one clashes
        def add(other, count):
            is_there = (js.memory.load(slots, other) == slot) & (other != exam)
            return count + jnp.where(is_there, js.memory.load(clashes, (exam, other)), 0)

        return jax.lax.fori_loop(0, EXAMS, add, jnp.zeros_like(slot))

    def weight(self, clashes, count, aggregates):  # each makes a slot 16 times less likely
        return jnp.int32(2**24) >> jnp.minimum(4 * count, 24)

    def assign(self, clashes, slots, exam, slot, where):
        return js.memory.store(slots, exam, slot, where)


slots = jnp.zeros((1, EXAMS), jnp.int32)
for number in range(100):
    made = js.successors.generate(number, FewClashes(), clashes, slots, num_successors=64)
    is_together = made.states[:, :, None] == made.states[:, None]
    costs = jnp.sum(is_together & (jnp.triu(clashes, 1) > 0)[None], axis=(1, 2))
    slots = made.states[jnp.argmin(costs)][None]
    if costs.min() == 0:
        break
print(f"{costs.min()} clashes:", *slots[0])
