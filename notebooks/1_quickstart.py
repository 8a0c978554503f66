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
# # A short tour through your cities
#
# You learn how to get a short tour from coordinates or distances in one call, how to read and draw
# the result, and how to watch a run. It takes a minute or two.

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
# The compilation cache keeps what this notebook compiles, so that it starts faster the next time.
# All settings are here: small ones for a CPU, larger ones for a GPU.

# %%
import pickle
import tempfile

import jax
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image, display

folder = js.enable_compilation_cache()

is_gpu = jax.default_backend() == "gpu"
rows, columns = (20, 50) if is_gpu else (10, 12)
num_cities = rows * columns
seconds = 20 if is_gpu else 3
print(f"{num_cities} cities, {seconds} s each, on {jax.devices()[0].device_kind}")

# %% [markdown]
# ## Your coordinates
#
# Cities are an array [n, 2]. These are random; yours may come from a file:
# `np.loadtxt("cities.csv", delimiter=",")`.

# %%
cities = np.random.default_rng(0).random((num_cities, 2))
cities[:3]

# %% [markdown]
# ## One call
#
# `max_seconds` is seconds of search. Compiling comes on top, in the first call for cities of about
# this number. Printed, a result is a summary.

# %%
result = js.solve_tsp(cities, max_seconds=seconds)
print(result)

# %% [markdown]
# ## The result
#
# `result.x` is the tour: the city at each position. `result.fun` is its length. NumPy comes to the
# same one:

# %%
tour = result.x
legs = cities[np.roll(tour, -1)] - cities[tour]
print(f"{np.hypot(*legs.T).sum():.6f} by NumPy, {result.fun:.6f} in the result")

# %% [markdown]
# `result.plot()` draws the tour, and how the best length fell. It returns the axes, so that titles
# and the like can be added.

# %%
left, right = result.plot()
left.set_title(f"{num_cities} cities, a tour of length {result.fun:.3f}")
right.set_title("The best tour so far")
plt.show()

# %% [markdown]
# ## Is it any good?
#
# The shortest tour of random cities is not known. That of a grid with an even number of cities is:
# as many steps of length 1 as there are cities. With a `target`, the run ends once it is reached,
# which for so regular an instance may be at once: a run starts at tours that are constructed.

# %%
grid = np.indices((rows, columns)).reshape(2, -1).T
on_grid = js.solve_tsp(grid, max_seconds=seconds, target=num_cities)
print(f"shortest possible: {num_cities}, found: {on_grid.fun:g} ({on_grid.message})")

# %% [markdown]
# ## Watch a run
#
# The call above is made of parts that you can put together yourself: a problem, moves, a search,
# and `js.solve`, which runs it. Here, tours are annealed from random ones by 2-opt. The temperature
# begins at a fraction of the typical distance of neighbors and falls by 2 % from time to time. A
# `callback` gets a report after each chunk of steps; `list.append` keeps them all.

# %%
problem = js.tsp_from_coords(cities)
schedule = js.geometric(0.3 / num_cities**0.5, alpha=0.98, steps_per_temperature=80)
search = js.simulated_annealing(js.two_opt(problem), schedule, moves_per_search=8)

reports = []
annealed = js.solve(
    problem,
    search,
    key=0,
    num_searches=8,
    max_steps=20_000,
    chunk_steps=500,
    callback=reports.append,
)
print(annealed)

# %% [markdown]
# An animation of this run. A report has the step, the best tour so far and its length.

# %%
with tempfile.TemporaryDirectory() as place:
    gif = f"{place}/run.gif"
    annealed.animate(reports, num_frames=20).save(gif, "pillow")
    display(Image(filename=gif))

# %% [markdown]
# ## Compare runs
#
# `js.plotting.plot_convergence` draws the course of several runs; with `best_known`, how far they
# are above it. `solve_tsp` starts at constructed tours, and combines those that it finds.

# %%
ax = js.plotting.plot_convergence(
    [annealed, result],
    labels=["2-opt from random tours", "solve_tsp"],
    best_known=min(annealed.fun, result.fun),
)
ax.set(title="Two ways to a short tour", xscale="log", ylabel="percent above the shorter one")
plt.show()

# %% [markdown]
# ## Your distances
#
# A matrix [n, n] works as well. Where streets run along the two axes, a city-block distance is
# closer to the truth. The best tour is a different one.

# %%
blocks = np.abs(cities[:, None] - cities[None]).sum(axis=-1)
by_blocks = js.solve_tsp(blocks, max_seconds=seconds)

figure, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
for ax, title, found in zip(
    axes, ("as the crow flies", "along the streets"), (result, by_blocks), strict=True
):
    js.plotting.plot_tour(cities, found.x, ax)
    ax.set_title(f"{title}: {found.fun:.3f}")
plt.show()

# %% [markdown]
# ## Keep it
#
# A result can be pickled. `history` has the course of the run as arrays.

# %%
again = pickle.loads(pickle.dumps(result))
course = again.history.arrays()
print(repr(again))
print({name: values[-1].item() for name, values in course.items()})

# %% [markdown]
# ## What next
#
# - The same key gives the same tour: `js.solve_tsp(cities, key=1, max_steps=1000)` depends on no
#   clock.
# - Many instances at once: `js.solve_tsp([cities, grid])`.
# - The next notebook runs many searches until the first one is done.
