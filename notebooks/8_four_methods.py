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
# # Four methods, one instance
#
# For teachers and students: simulated annealing, tabu search, a genetic algorithm and min-conflicts
# place the same queens on a board so that none attacks another. You see them at work, and compare
# how many moves each has to price. It takes about a minute.

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
# Settings: the number of queens, and of runs from which statistics are made.

# %%
import tempfile

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image, display

folder = js.enable_compilation_cache()

is_gpu = jax.default_backend() == "gpu"
num_queens = 24
num_runs = 256 if is_gpu else 32
print(f"{num_queens} queens, {num_runs} runs, on {jax.devices()[0].device_kind}")

# %% [markdown]
# ## The instance
#
# There is a queen in each row, and no two in a column: a placement is a permutation, the column of
# the queen in each row. The cost is the number of pairs that attack each other along diagonals. A
# random placement has many.

# %%
problem = js.nqueens(num_queens)
random_placement = np.random.default_rng(1).permutation(num_queens)
js.plotting.plot_board(random_placement, attacks=True)
plt.show()

# %% [markdown]
# ## The methods
#
# Three of them exchange the columns of two queens; how they choose these two is what differs.
#
# - **Annealing** (Kirkpatrick, Gelatt, Vecchi, 1983) prices one random exchange in a step. A better
#   one is made; a worse one by a chance that falls as the search cools.
# - **Tabu search** (Glover, 1986) prices all exchanges and makes the best one, even if that is
#   worse. What it just changed must not be changed back for a while.
# - **A genetic algorithm** (Holland, 1975) has a population of placements. Two parents have a
#   child, which is changed in one place and takes the place of the first parent if it is better.
# - **Min-conflicts** (Minton and others, 1992) prices exchanges of queens that are attacked, and
#   makes the best of them.

# %%
cooling = js.geometric(1.0, alpha=0.97, steps_per_temperature=20)
searches = {
    "annealing": js.simulated_annealing(js.QueenSwap(), cooling),
    "tabu search": js.tabu_search(js.Swap()),
    "genetic algorithm": js.genetic(population_size=64),
    "min-conflicts": js.min_conflicts(js.QueenSwap(), 0.05),
}
prices = {name: search.evaluations_per_step(problem) for name, search in searches.items()}
for name, price in prices.items():
    print(f"{name:<18} prices {price:4d} placements in a step")

# %% [markdown]
# ## Watch them
#
# A callback keeps a report after each chunk of steps, here after about as many priced placements
# for each method. All runs end at a valid placement, of cost 0. Red lines are attacks.

# %%
runs = {}
for name, search in searches.items():
    reports = []
    every = max(60 // prices[name], 1)
    limits = {"target": 0, "max_steps": 20_000, "chunk_steps": every, "check_every": every}
    js.solve(problem, search, 0, num_searches=1, callback=reports.append, **limits)
    # In the animation, a step is a placement that is priced.
    runs[name] = [one._replace(step=one.step * prices[name]) for one in reports]
    print(f"{name:<18} cost {runs[name][-1].fun} after {runs[name][-1].step:,} placements")

# %%
animation = js.plotting.animate(problem, list(runs.values()), labels=list(runs), num_frames=24)
with tempfile.TemporaryDirectory() as place:
    gif = f"{place}/run.gif"
    animation.save(gif, "pillow", dpi=60)
    display(Image(filename=gif))

# %% [markdown]
# ## One run says little
#
# All methods are random, so a fair comparison takes many runs. `js.run` is a pure function: `vmap`
# over keys makes all runs of a method in one program.


# %%
def placements_until_valid(name, keys):
    """Returns how many placements each run prices until one is valid; infinity if none is."""

    def one(key):
        limits = {"num_searches": 1, "max_steps": 20_000, "target": 0}
        count, found_by = js.first_hit(js.run(key, problem, searches[name], **limits))
        return jnp.where(found_by >= 0, count.low, jnp.inf)

    return np.asarray(jax.jit(jax.vmap(one))(keys)) * prices[name]


keys = jax.random.split(jax.random.key(1), num_runs)
needed = {name: np.sort(placements_until_valid(name, keys)) for name in searches}
for name, values in needed.items():
    print(
        f"{name:<18} median {np.median(values):9,.0f}, from {values[0]:7,.0f} to {values[-1]:9,.0f}"
    )

# %% [markdown]
# The share of runs that are done by a number of placements. Further left is better; a steep line
# means that runs hardly differ.

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
shares = np.arange(1, num_runs + 1) / num_runs
for (name, values), style in zip(needed.items(), ("-", "--", "-.", ":"), strict=True):
    ax.step(values, shares, style, where="post", linewidth=2, label=name)
ax.set(title=f"{num_queens} queens, {num_runs} runs of each method", xscale="log", ylim=(0, 1.02))
ax.set(xlabel="placements priced", ylabel="share of runs that are done")
ax.grid(alpha=0.3)
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## To think about
#
# - Why does min-conflicts need so few? What does it know that the others do not?
# - A genetic algorithm has no idea which queens are attacked. Give it one: `local_search=` makes it
#   memetic.
# - Change `num_queens` to 50. Which method suffers most? Does the order stay the same?
# - Cool more slowly (`alpha=0.99`): is annealing more reliable then, or only slower?
# - A price is not a second: tabu search prices all exchanges at once on a GPU. Measure seconds.
