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
# # Search inside your own `jit` and `vmap`
#
# `js.init`, `js.advance` and `js.run` are pure functions of arrays. So a search can be a part of
# your own program: you vectorize it over keys, temperatures and instances, steer it from a `scan`,
# and make labels from which a small model learns. It takes a minute or two.

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
# Settings: one instance for the first half, and how much is made of everything.

# %%
import itertools

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
import optax
from jax import lax

folder = js.enable_compilation_cache()

is_gpu = jax.default_backend() == "gpu"
num_cities = 60 if is_gpu else 40
num_keys = 64 if is_gpu else 12
num_steps = 6000
num_instances = 2000 if is_gpu else 400
print(f"{num_keys} keys, {num_instances} instances, on {jax.devices()[0].device_kind}")

# %% [markdown]
# ## A run is a function
#
# The instance is built outside: that is work for the host. `js.run` makes a whole run, and
# `js.best` returns the best tour and its length. A temperature may be a traced number.

# %%
cities = np.random.default_rng(0).random((num_cities, 2))
problem = js.tsp_from_coords(cities)


def shortest(key, temperature):
    """Returns the best tour of a run at one temperature, [n] int32, and its length."""
    search = js.simulated_annealing(js.Relocate(), temperature, moves_per_search=4)
    state = js.run(key, problem, search, num_searches=1, max_steps=num_steps)
    return js.best(problem, search, state)


tour, length = jax.jit(shortest)(jax.random.key(0), 0.03)
print(f"length {length:.3f}")

# %% [markdown]
# ## Many keys
#
# `vmap` makes many runs at once, each as it would be alone: this is how a result gets an error bar.

# %%
keys = jax.random.split(jax.random.key(1), num_keys)
_, lengths = jax.jit(jax.vmap(shortest, in_axes=(0, None)))(keys, 0.03)
error = lengths.std(ddof=1) / num_keys**0.5
print(f"mean length {lengths.mean():.3f} +- {error:.3f}, best {lengths.min():.3f}")

# %% [markdown]
# ## A sweep of temperatures
#
# A second `vmap` runs all keys at all temperatures in one program. Another temperature needs no new
# compilation, because it is data.

# %%
temperatures = jnp.geomspace(1e-3, 0.3, 13)
sweep = jax.vmap(jax.vmap(lambda key, t: shortest(key, t)[1], (0, None)), (None, 0))
by_temperature = jax.jit(sweep)(keys, temperatures)

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(temperatures, by_temperature, ".", color="tab:blue", alpha=0.35)
ax.plot(temperatures, jnp.median(by_temperature, axis=1), color="black", label="median")
ax.set(
    title=f"{num_steps:,} steps at one temperature, {num_keys} keys",
    xlabel="temperature",
    ylabel="length of the best tour",
    xscale="log",
)
ax.grid(alpha=0.3)
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# Colder runs get stuck, warmer ones wander. In between lies the best constant temperature.

# %%
best_temperature = temperatures[jnp.argmin(jnp.median(by_temperature, axis=1))]
print(f"the best constant temperature is about {best_temperature:.3f}")

# %% [markdown]
# ## Steer it yourself
#
# `js.init` makes the state of a run, and `js.advance` makes some steps of it. In a `lax.scan`, what
# happened in one part can decide about the next. This is a thermostat: it asks for a share of moves
# that should be accepted, which falls along the run, and turns the temperature up or down.
# `state.info` counts what was accepted in the last part.

# %%
num_parts = 100
wanted = jnp.geomspace(0.2, 0.001, num_parts)


def with_thermostat(key):
    """Returns the best length, the temperature and the acceptance in each part, [parts] each."""

    def search_at(temperature):
        return js.simulated_annealing(js.Relocate(), temperature, moves_per_search=4)

    def part(carry, share):
        state, temperature = carry
        state = js.advance(problem, search_at(temperature), state, num_steps // num_parts)
        accepted = state.info.accepted.mean() / (num_steps // num_parts)
        warmer = jnp.where(accepted < share, 1.3, 1 / 1.3)
        return (state, temperature * warmer), (state.best_cost, temperature, accepted)

    first = jnp.float32(0.1)
    state = js.init(key, problem, search_at(first), num_searches=1)
    return lax.scan(part, (state, first), wanted)[1]


best, warmth, accepted = jax.jit(jax.vmap(with_thermostat))(keys)
print(f"mean length {best[:, -1].mean():.3f}, no temperature given")

# %% [markdown]
# What the thermostat did: thin lines are runs.

# %%
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
step = jnp.arange(1, num_parts + 1) * (num_steps // num_parts)
for ax, title, values in zip(
    axes, ("best length", "temperature", "share accepted"), (best, warmth, accepted), strict=True
):
    ax.plot(step, values.T, color="tab:blue", alpha=0.25, linewidth=0.8)
    ax.plot(step, jnp.median(values, axis=0), color="black", label="median")
    ax.set(title=title, xlabel="steps")
    ax.grid(alpha=0.3)
axes[1].set_yscale("log")
axes[2].plot(step, wanted, ":", color="tab:red", label="wanted")
axes[2].legend(frameon=False)
figure.suptitle(f"A thermostat, {num_keys} keys")
plt.show()

# %% [markdown]
# ## Many instances
#
# A problem is a pytree of arrays. Problems of one size are stacked leaf by leaf, and a `vmap` over
# the stack searches all of them.

# %%
some = np.random.default_rng(1).random((16, num_cities, 2))
problems = [js.tsp_from_coords(points) for points in some]
stack = jax.tree.map(lambda *leaves: jnp.stack(leaves), *problems)


def length_of(problem, key):
    search = js.simulated_annealing(js.Relocate(), 0.03, moves_per_search=4)
    state = js.run(key, problem, search, num_searches=2, max_steps=num_steps)
    return js.best(problem, search, state)[1]


found = jax.jit(jax.vmap(length_of))(stack, jax.random.split(jax.random.key(2), len(some)))
print(f"{found.shape[0]} instances, mean length {found.mean():.3f}")

# %% [markdown]
# ## Labels for learning
#
# Which neighbors does a city have in a short tour? Tours of many small instances are the labels.
# Outside of a `jit`, the one-liner `js.solve_tsp` finds better tours than the runs above.

# %%
num_small, num_near = 30, 8
instances = np.random.default_rng(3).random((num_instances, num_small, 2))
labeled = js.solve_tsp(instances, max_seconds=20 if is_gpu else 2)
print(labeled)

# %% [markdown]
# A city sees its nearest neighbors, as offsets: turned so that the nearest one lies to the right,
# and scaled. Its label says which of these neighbors come before or after it in the tour.


# %%
def seen(points):
    """Returns what each city sees, [n, 2 K], and the neighbors it sees, [n, K]."""
    where = points[:, 0] + 1j * points[:, 1]
    gaps = jnp.abs(where[:, None] - where[None])
    near = jnp.argsort(gaps, axis=1)[:, 1 : num_near + 1]
    offset = where[near] - where[:, None]
    offset = offset * jnp.conj(offset[:, :1] / jnp.abs(offset[:, :1]))
    offset = offset / jnp.abs(offset).mean(axis=1, keepdims=True)
    return jnp.concatenate([offset.real, offset.imag], axis=1), near


def label(tour, near):
    """Returns which neighbors are next to each city in its tour, [n, K] of 0 and 1."""
    position = jnp.argsort(tour)
    beside = jnp.stack([tour[(position + by) % num_small] for by in (1, -1)], axis=1)
    return (near[:, :, None] == beside[:, None, :]).any(axis=2).astype(jnp.float32)


views, near = jax.jit(jax.vmap(seen))(jnp.asarray(instances, jnp.float32))
labels = jax.jit(jax.vmap(label))(jnp.asarray(labeled.x), near)
num_test = num_instances // 5
print(f"{views[num_test:].shape[0] * num_small:,} cities to learn from")
print(
    f"of the neighbors in tours, {labels.sum() / labels[..., 0].size / 2:.1%} are among those seen"
)

# %% [markdown]
# ## A tiny model
#
# Two hidden layers, in plain JAX. For each neighbor that a city sees, the model gives the logit of
# the chance that it is next in the tour.


# %%
def layers(key, sizes):
    shapes = list(itertools.pairwise(sizes))
    keys = jax.random.split(key, len(shapes))
    return [
        (jax.random.normal(one, shape) * (2 / shape[0]) ** 0.5, jnp.zeros(shape[1]))
        for one, shape in zip(keys, shapes, strict=True)
    ]


def logits(model, view):
    *hidden, (weight, bias) = model
    for inner, shift in hidden:
        view = jax.nn.relu(view @ inner + shift)
    return view @ weight + bias


def loss(model, view, is_next):
    return optax.sigmoid_binary_cross_entropy(logits(model, view), is_next).mean()


# %% [markdown]
# Training is one `scan` over updates by `optax`, on random batches of cities.

# %%
optimizer = optax.adam(2e-3)
data = [part[num_test:].reshape(-1, part.shape[-1]) for part in (views, labels)]


@jax.jit
def train(model, key):
    def update(carry, key):
        model, memory = carry
        batch = jax.random.randint(key, (256,), 0, len(data[0]))
        value, slope = jax.value_and_grad(loss)(model, *(part[batch] for part in data))
        change, memory = optimizer.update(slope, memory)
        return (optax.apply_updates(model, change), memory), value

    (model, _), values = lax.scan(
        update, (model, optimizer.init(model)), jax.random.split(key, 2000)
    )
    return model, values


# %% [markdown]
# The loss should fall, and level off.

# %%
start = layers(jax.random.key(4), (2 * num_near, 64, 64, num_near))
model, losses = train(start, jax.random.key(5))

figure, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.plot(losses, color="tab:blue", alpha=0.25, linewidth=0.8)
ax.plot(jnp.arange(50, len(losses) + 1, 50), losses.reshape(-1, 50).mean(axis=1), color="black")
ax.set(title="Learning from tours", xlabel="updates", ylabel="cross-entropy")
ax.grid(alpha=0.3)
plt.show()

# %% [markdown]
# ## Did it learn?
#
# For instances that it has not seen, the model names the two likeliest neighbors of each city. The
# simple rule to beat: the two nearest ones.

# %%
test_labels = labels[:num_test]


def share_right(scores):
    """Returns the share of named neighbors that are next to the city in the tour."""
    two = lax.top_k(scores, 2)[1]
    return jnp.take_along_axis(test_labels, two, axis=-1).mean()


chances = jax.nn.sigmoid(logits(model, views[:num_test]))
nearest = jnp.broadcast_to(-jnp.arange(num_near), test_labels.shape)
print(f"the two nearest:  {share_right(nearest):.1%} right")
print(f"the model's two:  {share_right(chances):.1%} right")

# %% [markdown]
# An instance of the test: the darker a line, the surer the model; the tour is drawn in orange.

# %%
sure, others = np.asarray(chances) ** 2, np.asarray(near)
figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
for ax, number in zip(axes, (0, 1), strict=True):
    points = instances[number]
    closed = points[np.append(labeled.x[number], labeled.x[number][0])]
    ax.plot(*closed.T, color="tab:orange", linewidth=5, alpha=0.5, zorder=1)
    for city in range(num_small):
        for other, chance in zip(others[number, city], sure[number, city], strict=True):
            ax.plot(*points[[city, other]].T, color="black", alpha=chance, linewidth=1.2, zorder=2)
    ax.plot(*points.T, ".", color="black", markersize=7, zorder=3)
    ax.set(title=f"test instance {number}", xticks=[], yticks=[], aspect="equal")
plt.show()

# %% [markdown]
# ## What next
#
# - Outside of a `jit`, `js.solve` runs faster on a CPU: in loops that are compiled as one function.
# - Any search fits in: tabu search on a QAP, a genetic algorithm, parts of your own.
# - Let the model propose: chances as candidate lists, or as weights of a heuristic in
#   `js.successors`.
