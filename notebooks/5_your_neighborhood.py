# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A neighborhood of your own, from three functions to a fused kernel
#
# You write a problem the library does not know, first in the fewest lines that work. Then you give
# its moves a price of their own, test it, and see that the same code lowers to a fused GPU kernel.
# No GPU is needed. It takes a minute or two.

# %% [markdown]
# This cell installs the package where it is missing, and tells what runs here. No GPU is needed: on
# a CPU, the settings below are small. Colab gives one by Runtime > Change runtime type > T4 GPU.

# %%
try:
    import jaxopt_search as js
except ImportError:
    # %pip install --quiet "jaxopt_search[plot]"
    import jaxopt_search as js

is_well = js.doctor()

# %% [markdown]
# Settings: how many teams are ranked, and how long a search is.

# %%
import dataclasses

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

from jaxopt_search.backends.memory import load, store

folder = js.enable_compilation_cache()

is_gpu = jax.default_backend() == "gpu"
num_teams = 100 if is_gpu else 40
num_searches = 128 if is_gpu else 16
num_steps = 8000 if is_gpu else 4000
print(f"{num_teams} teams on {jax.devices()[0].device_kind}")

# %% [markdown]
# ## The problem
#
# Teams play many games. A good ranking has few upsets: games won by the team that is ranked lower.
# `wins[i, j]` counts how often i beat j. The games are made up: stronger teams win more often.

# %%
rng = np.random.default_rng(0)
strength = rng.normal(0, 1, num_teams)
chance = 1 / (1 + np.exp(strength[None] - strength[:, None]))
games = 5
first_wins = np.triu(rng.binomial(games, chance), 1)
wins = first_wins + np.triu(games - first_wins, 1).T
print(f"{wins.sum()} games")

# %% [markdown]
# A problem needs `init`, a random solution, and `cost`. Arrays are leaves of the pytree, sizes are
# static. Keep the table flat: kernels read arrays of one axis best.


# %%
@js.pytree
@dataclasses.dataclass(frozen=True)
class Ranking(js.Problem):
    """Wins, [n * n] int32, row by row; a solution is the teams from first to last, [n] int32."""

    wins: jax.Array
    n: int = dataclasses.field(metadata={"static": True})

    space = "permutation"

    def init(self, key):
        return jax.random.permutation(key, jnp.arange(self.n, dtype=jnp.int32))

    def cost(self, order):
        ranked = self.wins.reshape(self.n, self.n)[order][:, order]
        return jnp.sum(jnp.tril(ranked, -1), dtype=jnp.int32)  # the lower one beat the higher


problem = Ranking(jnp.asarray(wins.ravel(), jnp.int32), num_teams)
order = problem.init(jax.random.key(0))
print(f"a random ranking has {problem.cost(order)} upsets")

# %% [markdown]
# ## Three functions
#
# A move exchanges two teams that are next to each other. `num_words` is how many random words a
# proposal takes, `propose` turns them into a move, and `apply` makes it.


# %%
@dataclasses.dataclass(frozen=True)
class Neighbors(js.Moves):
    """The team at a position changes places with the next one."""

    num_words = 1

    def propose(self, problem, order, words):
        return js.random.below(words[0], problem.n - 1)

    def apply(self, problem, order, position):
        upper, lower = order[position], order[position + 1]
        return order.at[position].set(lower).at[position + 1].set(upper)


# %% [markdown]
# That is enough for a search. Each move is priced by evaluating the whole ranking.

# %%
schedule = js.geometric(10.0, alpha=0.95, steps_per_temperature=num_steps // 100)
limits = {"num_searches": num_searches, "max_steps": num_steps}
simple = js.simulated_annealing(Neighbors(), schedule, moves_per_search=8)
in_full = js.solve(problem, simple, key=0, **limits)
print(in_full)

# %% [markdown]
# ## A price of its own
#
# Exchanging two neighbors changes only what these two won against each other, so the price is a
# difference of two numbers. Two more functions say so: `delta` prices a move, `commit` makes it
# where `accept` holds. `init`, `snapshot` and `solution` turn a solution into a *representation*,
# whatever makes prices cheap, and back; here it is the solution itself.
#
# In a kernel arrays become memory that is read by `load` and written by `store`. So there is no
# `order[...]` here, and no `if` on values.


# %%
@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class PricedNeighbors(js.Neighborhood):
    """The same moves, priced in O(1)."""

    num_words = 1
    is_portable = True

    def init(self, problem, solution):
        return solution

    def snapshot(self, order):
        return order

    def solution(self, problem, snapshot):
        return snapshot

    def propose(self, problem, order, words):
        return js.random.below(words[0], problem.n - 1)

    def delta(self, problem, order, position):
        upper, lower = load(order, position), load(order, position + 1)
        before = load(problem.wins, lower * problem.n + upper)
        return load(problem.wins, upper * problem.n + lower) - before

    def commit(self, problem, order, position, accept):
        upper, lower = load(order, position), load(order, position + 1)
        order = store(order, position, lower, accept)
        return store(order, position + 1, upper, accept)


# %% [markdown]
# ## Test it
#
# `js.testing` knows the laws of neighborhoods. The most important one: the delta is the change in
# full cost. Small instances find the most mistakes. First a version with a mistake, its sign:


# %%
@jax.tree_util.register_static
class Wrong(PricedNeighbors):
    def delta(self, problem, order, position):
        return -super().delta(problem, order, position)


small = Ranking(jnp.asarray(wins[:6, :6].ravel(), jnp.int32), 6)
try:
    js.testing.check_neighborhood(Wrong(), small, implementations=False)
except AssertionError as error:
    print(error)

# %% [markdown]
# The right one passes in silence.

# %%
js.testing.check_neighborhood(PricedNeighbors(), small, implementations=False)

# %% [markdown]
# ## The same searches, only faster
#
# Both searches draw the same random words, so all results are equal, bit for bit.

# %%
priced = js.simulated_annealing(PricedNeighbors(), schedule, moves_per_search=8)
by_delta = js.solve(problem, priced, key=0, **limits)
print(f"equal in all searches: {(by_delta.costs == in_full.costs).all()}")

# %% [markdown]
# What differs is the pace. A price takes less work, and on a CPU a portable search also runs in
# loops that are compiled as one function.

# %%
paces = {
    "in full": in_full.nfev / in_full.history[-1].seconds,
    "by delta": by_delta.nfev / by_delta.history[-1].seconds,
}
figure, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
bars = ax.barh(list(paces), list(paces.values()), color=["tab:gray", "tab:blue"])
ax.bar_label(bars, [f" {pace:.1e}" for pace in paces.values()])
slowest, fastest = sorted(paces.values())
ax.set(title="Pace", xlabel="moves priced per second", xscale="log")
ax.set_xlim(slowest / 10, fastest * 10)
plt.show()

# %% [markdown]
# ## Does it run in a kernel?
#
# On an NVIDIA GPU (compute capability 8.0 or later) a search whose parts allow it runs as one fused
# kernel, a program per search. `why_not_portable` finds out on any machine, by lowering it. The
# first version cannot, and the answer says why. For the second it is empty: nothing is in the way.

# %%
print("in full: ", js.why_not_portable(problem, simple))
print("by delta:", js.why_not_portable(problem, priced) or "portable")

# %% [markdown]
# A reason names the function, its line and the operation, in the end in JAX's own words. Here is
# one that most people meet: a `commit` that makes a new array, as JAX code mostly does, where a
# kernel has to write into the old one. `docs/your_own_problem.md` explains the common reasons.


# %%
@jax.tree_util.register_static
class NewArrays(PricedNeighbors):
    def commit(self, problem, order, position, accept):
        place = jnp.arange(problem.n)
        source = jnp.where(place == position, position + 1, place)
        source = jnp.where(place == position + 1, position, source)
        return jnp.where(accept, order[source], order)


print(js.why_not_portable(problem, js.simulated_annealing(NewArrays(), schedule)))

# %% [markdown]
# `check_implementations` compares all ways to run it on this machine, bit for bit: XLA, loops
# compiled for a CPU, and what a kernel would do, evaluated by XLA.

# %%
js.testing.check_implementations(priced, small)

# %% [markdown]
# `result.env` tells which one ran, and if it was not the kernel on a GPU, why.

# %%
for name, found in (("in full", in_full), ("by delta", by_delta)):
    print(f"{name}: {found.env['implementation']}")

# %% [markdown]
# ## The result
#
# A table of wins in the order of the ranking should be dark above the diagonal: the higher team
# won.

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
for ax, (name, ranked) in zip(
    axes, {"random": np.asarray(order), "found": by_delta.x}.items(), strict=True
):
    shown = ax.imshow(wins[np.ix_(ranked, ranked)], cmap="Blues", vmin=0, vmax=games)
    ax.set(title=f"{name}: {problem.cost(ranked)} upsets", xlabel="loser", ylabel="winner")
figure.colorbar(shown, ax=axes, label="games won")
plt.show()

# %% [markdown]
# The strengths that the games were made from are known here, so one more check is possible. The
# true ranking need not have the fewest upsets: games are luck, too.

# %%
true_order = np.argsort(-strength).astype(np.int32)
print(f"upsets of the true ranking: {problem.cost(true_order)}, of the one found: {by_delta.fun}")

# %% [markdown]
# ## What next
#
# - Moves that change more: `docs/your_own_problem.md` keeps gains up to date with loops over lanes.
# - Rules of acceptance and searches of your own: `docs/your_own_search.md`.
# - Put the two checks into your tests; on a GPU compare `implementations=("xla", "cuda")`.
