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
# # FANG: a problem of your own in 40 lines
#
# Some solutions are better built value by value than changed by small moves. You write a *local
# heuristic*, three short functions, and get thousands of random successors of a state at once, by
# the method of Köster, Groß and Krüger ("FANG: Fast and Efficient Successor-State Generation for
# Heuristic Optimization on GPUs"). It takes about a minute.

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
# Settings: the problem's size, and how many successors are made in each round.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

folder = js.enable_compilation_cache()

is_gpu = jax.default_backend() == "gpu"
num_towers, num_channels = (120, 8) if is_gpu else (80, 7)
num_successors = 512 if is_gpu else 64
max_rounds = 30
print(f"{num_towers} towers, {num_channels} channels, on {jax.devices()[0].device_kind}")

# %% [markdown]
# ## The problem
#
# Radio towers that stand close to one another need different channels. The data of the problem is
# a table: 1 where two towers interfere.

# %%
places = np.random.default_rng(4).random((num_towers, 2))
gaps = np.linalg.norm(places[:, None] - places[None], axis=-1)
is_near = (gaps < 1.5 / num_towers**0.5) & ~np.eye(num_towers, dtype=bool)
interferes = jnp.asarray(is_near, jnp.int32)
print(f"{is_near.sum() // 2} pairs interfere, a tower with up to {is_near.sum(axis=1).max()}")

# %% [markdown]
# A *state* is the channel of each tower. Its cost is the number of pairs that interfere on the same
# channel. States come in batches, so this counts for all of them.


# %%
@jax.jit
def conflicts(states):
    """Returns the conflicts of each tower, [X, n], for states [X, n]."""
    is_same = states[:, :, None] == states[:, None, :]
    return jnp.sum(is_same & (interferes > 0)[None], axis=2)


def costs(states):
    return conflicts(states).sum(axis=1) // 2


start = jax.random.randint(jax.random.key(0), (1, num_towers), 0, num_channels, jnp.int32)
print(f"{costs(start)[0]} conflicts at the start")

# %% [markdown]
# In pictures, a tower has the color of its channel. Lines join towers that interfere; dark ones,
# two on the same channel.


# %%
def draw(ax, channels, title):
    edges = np.argwhere(np.triu(is_near))
    js.plotting.plot_graph(edges, channels, ax, coords=places).set_title(title)


figure, ax = plt.subplots(figsize=(5, 5), layout="constrained")
draw(ax, np.asarray(start[0]), f"At the start: {costs(start)[0]} conflicts")
plt.show()

# %% [markdown]
# ## The heuristic
#
# - `rate` says how good each possibility is: here, how many towers on that channel interfere.
#   `possibility` is an array of many channels, so the code is elementwise.
# - `weight` turns ratings into weights; a value is drawn by its weight. Each conflict makes a
#   channel 16 times less likely.
# - `assign` writes the value down.
#
# Towers are assigned one after the other, and later ones see what earlier ones were given. Arrays
# are read by `js.memory.load` and written by `js.memory.store`; then the same code runs in loops
# that are compiled for a CPU (`is_portable`) and in a fused kernel on a GPU.


# %%
@jax.tree_util.register_static
class QuietChannels(js.successors.LocalHeuristic):
    num_variables, max_possibilities, is_portable = num_towers, num_channels, True

    def rate(self, interferes, channels, tower, channel):
        def add(other, count):
            is_there = (js.memory.load(channels, other) == channel) & (other != tower)
            return count + jnp.where(is_there, js.memory.load(interferes, (tower, other)), 0)

        return jax.lax.fori_loop(0, num_towers, add, jnp.zeros_like(channel))

    def weight(self, interferes, count, aggregates):
        return jnp.int32(2**24) >> jnp.minimum(4 * count, 24)

    def assign(self, interferes, channels, tower, channel, where):
        return js.memory.store(channels, tower, channel, where)


# %% [markdown]
# `check` looks for what a heuristic must not do, such as negative weights, or an `assign` that
# writes where it must not. It is silent if it finds nothing.

# %%
js.successors.check(QuietChannels(), interferes, start)

# %% [markdown]
# To see it speak, forget about `where`:


# %%
@jax.tree_util.register_static
class Careless(QuietChannels):
    def assign(self, interferes, channels, tower, channel, where):
        return js.memory.store(channels, tower, channel, jnp.bool_(True))


try:
    js.successors.check(Careless(), interferes, start)
except ValueError as error:
    print(error)

# %% [markdown]
# ## Successors
#
# One call makes many successors of each state, each with random numbers of its own.

# %%
made = js.successors.generate(0, QuietChannels(), interferes, start, num_successors=num_successors)
print(f"{made.states.shape[0]} successors of {start.shape[0]} state")
print(f"conflicts: {costs(start)[0]} before, {costs(made.states).min()} to", end=" ")
print(f"{costs(made.states).max()} after")

# %% [markdown]
# Compare them with states in which all channels are random: that is what the heuristic is worth.

# %%
drawn = jax.random.randint(jax.random.key(1), made.states.shape, 0, num_channels, jnp.int32)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
everything = np.concatenate([costs(drawn), costs(made.states)])
edges = np.linspace(everything.min() - 0.5, everything.max() + 0.5, 40)
for name, states in (("random states", drawn), ("successors", made.states)):
    ax.hist(np.asarray(costs(states)), edges, histtype="step", linewidth=2, label=name)
ax.set(title="Conflicts of a state", xlabel="pairs in conflict", ylabel="states")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## A search
#
# The simplest one: keep the best successor and make successors of it, until nothing is in conflict.
# By default all towers are reassigned. `active` names those that are: here, the towers that are
# in conflict, and their neighbors.


# %%
def search(only_some):
    """Returns the best state after some rounds, and the course of its conflicts."""
    state, course = start, [int(costs(start)[0])]
    for number in range(max_rounds):
        is_bad = conflicts(state)[0] > 0
        is_active = is_bad | (interferes @ is_bad > 0)
        active = js.successors.bit_sets.pack(is_active) if only_some else None
        made = js.successors.generate(
            number,
            QuietChannels(),
            interferes,
            state,
            active=active,
            num_successors=num_successors,
        )
        best = jnp.argmin(costs(made.states))
        state = made.states[best][None]
        course.append(int(costs(state)[0]))
        if course[-1] == 0:
            break
    return np.asarray(state[0]), course


of_all, course_of_all = search(only_some=False)
of_some, course_of_some = search(only_some=True)
print(f"all towers: {course_of_all[-1]} conflicts after {len(course_of_all) - 1} rounds")
print(f"those in conflict: {course_of_some[-1]} conflicts after {len(course_of_some) - 1} rounds")

# %% [markdown]
# The course of both searches, and where the second one ended.

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
left.plot(course_of_all, label="all towers are reassigned")
left.plot(course_of_some, label="those in conflict, and their neighbors")
left.set(title="The best state of each round", xlabel="round", ylabel="pairs in conflict")
left.set_ylim(bottom=0)
left.grid(alpha=0.3)
left.legend(frameon=False)
draw(right, of_some, f"The second search, at the end: {course_of_some[-1]} conflicts")
plt.show()

# %% [markdown]
# ## What next
#
# - A heuristic may have more: aggregates of all ratings, a number of possibilities that depends on
#   the state, hooks before and after a variable: see `js.successors.LocalHeuristic`.
# - Keep several states per round in place of one: `generate` takes any number of states, and
#   `made.parent` says whose successor each is.
# - This problem is a graph coloring, which the library knows: `js.graph_coloring` with
#   `js.tabu_search` is the stronger way. FANG is for problems that nobody has prepared.
