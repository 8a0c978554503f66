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
# # A problem of my own
#
# You have a cost that you can write in a few lines of `jax.numpy`, and want a good solution. The
# example is a flow shop: jobs pass machines, and the order of the jobs decides when the last one is
# done. You write the cost and a picture, name the moves, and make one call. It takes a minute.

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
# Settings: how many jobs and machines, and for how long to search.

# %%
import dataclasses
import tempfile

import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image, display
from jax import lax

folder = js.enable_compilation_cache()

is_gpu = jax.default_backend() == "gpu"
num_jobs, num_machines = (100, 20) if is_gpu else (50, 10)
seconds = 10
print(f"{num_jobs} jobs, {num_machines} machines, {seconds} s, on {jax.devices()[0].device_kind}")

# %% [markdown]
# ## The data
#
# Minutes of each job on each machine. All jobs pass the machines in the same order, and no job
# overtakes another. These are random; put in yours.

# %%
times = np.random.default_rng(0).integers(1, 100, (num_jobs, num_machines)).astype(np.int32)
times[:3]

# %% [markdown]
# ## The cost
#
# A job starts on a machine once it has left the one before and once the machine is free. In plain
# Python that is two loops:


# %%
def schedule(times, order):
    """Returns when each job leaves each machine, [jobs, machines]; the first job first."""
    ends = np.zeros((len(order) + 1, times.shape[1] + 1), int)
    for i, job in enumerate(order):
        for machine, minutes in enumerate(times[job]):
            ends[i + 1, machine + 1] = max(ends[i + 1, machine], ends[i, machine + 1]) + minutes
    return ends[1:, 1:]


print(f"done after {schedule(times, range(num_jobs)).max()} minutes, in the order as it comes")

# %% [markdown]
# In JAX the loop over jobs is a `fori_loop`, and that over machines a cumulative maximum: what lies
# behind a machine is known, so a job waits only where the machine is busy for longer than the job
# takes to get there.


# %%
def makespan(times, order):
    """Returns when the last job leaves the last machine, [] int32."""

    def place(i, ends):
        total = jnp.cumsum(times[order[i]])
        return total + lax.cummax(ends - (total - times[order[i]]))

    start = jnp.zeros(times.shape[1], times.dtype)
    return lax.fori_loop(0, order.shape[0], place, start)[-1]


print(f"done after {makespan(jnp.asarray(times), jnp.arange(num_jobs))} minutes, by JAX")

# %% [markdown]
# ## The problem
#
# A problem is a class with `init`, a random solution, and `cost`. `space` says that solutions are
# permutations. `picture` is what `result.plot()` calls: it returns a function that draws on axes.


# %%
@js.pytree
@dataclasses.dataclass(frozen=True)
class FlowShop(js.Problem):
    """Minutes, [jobs, machines] int32; a solution is the order of the jobs, [jobs] int32."""

    times: jax.Array

    space = "permutation"

    def init(self, key):
        jobs = jnp.arange(self.times.shape[0], dtype=jnp.int32)
        return jax.random.permutation(key, jobs)

    def cost(self, order):
        return makespan(self.times, order)

    def picture(self, order):
        times, colors = np.asarray(self.times), plt.get_cmap("viridis", len(order))
        ends, machines = schedule(times, order), np.arange(times.shape[1])

        def draw(ax):
            for job, end in zip(order, ends, strict=True):
                minutes = times[job]
                bars = {"color": colors(job), "edgecolor": "white", "linewidth": 0.4}
                ax.barh(machines, minutes, left=end - minutes, **bars)
            ax.set(xlabel="minutes", ylabel="machine", yticks=machines)
            ax.invert_yaxis()

        return draw


problem = FlowShop(jnp.asarray(times))

# %% [markdown]
# ## One call
#
# Moves say what may change in a step: `js.Insert()` takes a job out and puts it in elsewhere.
# `js.anneal` measures how much moves change the cost and cools from there, so there is no
# temperature to choose. A callback keeps where the run stood.

# %%
reports = []
result = js.anneal(problem, js.Insert(), max_seconds=seconds, callback=reports.append)
print(result)

# %% [markdown]
# Is it any good? Each machine has to do all of its work, after the shortest way to it and before
# the shortest way behind it. No order is done sooner than that.

# %%
before = np.cumsum(times, axis=1) - times
behind = times.sum(axis=1, keepdims=True) - before - times
bound = (before.min(axis=0) + times.sum(axis=0) + behind.min(axis=0)).max()
print(f"{result.fun} minutes, {result.fun / bound - 1:.1%} above a bound of {bound}")

# %% [markdown]
# ## The picture
#
# Each bar is a job on a machine; a job has the same color on all of them.

# %%
left, right = result.plot()
left.set_title(f"Done after {result.fun} minutes")
right.set_ylabel("minutes")
plt.show()

# %% [markdown]
# `result.animate` shows how it came about.

# %%
with tempfile.TemporaryDirectory() as place:
    gif = f"{place}/run.gif"
    result.animate(reports, num_frames=12).save(gif, "pillow", dpi=60)
    display(Image(filename=gif))

# %% [markdown]
# ## The kernel
#
# On an NVIDIA GPU (compute capability 8.0 or later) this plain cost runs in a fused kernel, with
# moves of all searches priced side by side. `why_not_portable` tells on any machine whether it
# will: an empty answer means that nothing is in the way.

# %%
search = js.simulated_annealing(js.Insert(), 10.0, moves_per_search=8)
print(js.why_not_portable(problem, search) or "nothing is in the way")
print("it ran here as:", result.env["implementation"])

# %% [markdown]
# ## What next
#
# - Other moves: `js.Swap()` for orders, `js.Assign()` and `js.Flip()` where each variable has one
#   of a few values (`js.VectorProblem`), or your own: see the notebook on neighborhoods.
# - Due dates, set-up times or a second goal: write them into `makespan`, and nothing else changes.
# - `js.testing.check_problem(problem)` looks for what a problem must not do.
