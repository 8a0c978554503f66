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
# # How many GPUs should I rent?
#
# Many independent runs are started; the first one to reach the target ends them all. You learn how
# to make such runs, how to describe how long one of them takes, and how to tell from it what more
# runs, and more GPUs, would bring. It takes a minute or two.
#
# The method is Tsutsui and Fujimoto's ("An Analytical Study of GPU Computation for Solving QAPs by
# Parallel Evolutionary Computation with Independent Run", 2010). [The page on
# islands](../docs/islands.md) has their instances, on GPUs.

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
# Settings: how many runs are made to learn from, and how long one may take.

# %%
import jax
import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

folder = js.enable_compilation_cache()

is_gpu = jax.default_backend() == "gpu"
num_facilities, population_size = (10, 32) if is_gpu else (9, 8)
num_runs = 500 if is_gpu else 100
max_generations = 20_000
print(f"{num_runs} runs on {jax.devices()[0].device_kind}")

# %% [markdown]
# ## The problem
#
# A quadratic assignment problem: facilities go to locations, and much flow should go a short way.
# The optimum of this random instance is not known, as mostly. So the target is what another method,
# tabu search, finds in two seconds.

# %%
instance = js.datasets.uniform_qap(num_facilities, seed=0)
problem = js.qap_from_instance(instance)
target = js.solve_qap(instance.flow, instance.distance, max_seconds=2).fun
print(f"{num_facilities} facilities, target {target:,}")

# %% [markdown]
# ## Islands, and the first finisher
#
# Each search of this genetic algorithm is an island: a population of its own, which restarts once
# its individuals have become alike. The islands exchange nothing. The run ends when the first
# island has reached the target. (The paper's populations have 128 individuals; these are small, for
# the sake of a CPU.)

# %%
num_islands = 132 if is_gpu else 16
search = js.genetic(population_size=population_size, restart_every=10)
result = js.solve(
    problem, search, key=0, num_searches=num_islands, target=target, max_steps=max_generations
)
print(result)

# %% [markdown]
# `first_hit` says which island was first and in which generation it was done, exactly, although
# the run looks at its islands only once in a while.

# %%
print(result.first_hit)
left, right = result.plot()
left.set_title(f"Flow times distance, cost {result.fun:,}")
right.set_title("The best of all islands")
plt.show()

# %% [markdown]
# ## How long does one island take?
#
# For that, islands must not stop one another: each is a run of its own, with one search. `js.run`
# is a pure function, so `vmap` over keys makes all runs in one program. Generations are counted,
# not seconds: they are the same on any machine.


# %%
def generations(key):
    """Returns how many generations an island takes; infinity if it takes too many."""
    state = js.run(
        key,
        problem,
        search,
        num_searches=1,
        max_steps=max_generations,
        target=target,
    )
    # A count of steps is two words, of which the lower one is enough here; -1 is no island.
    count, island = js.first_hit(state)
    return jnp.where(island >= 0, count.low, jnp.inf)


keys = jax.random.split(jax.random.key(1), num_runs)
taken = np.asarray(jax.jit(jax.vmap(generations))(keys))
done = np.sort(taken[np.isfinite(taken)])
print(f"{len(done)} of {num_runs} runs reached the target")
print(f"generations: median {np.median(taken):.0f}, from {done[0]:.0f} to {done[-1]:.0f}")

# %% [markdown]
# ## The distribution of run times
#
# The paper fits a gamma distribution. `js.run_times.fit` fits several families; a run that was cut
# off counts as one that takes longer. `misfit` is the distance of Kolmogorov and Smirnov: the
# largest difference between the distribution and the share of runs that were done by a time.

# %%
families = ("gamma", "exponential", "lognormal", "normal")
fits = {family: js.run_times.fit(taken, family) for family in families}
for family, fit in fits.items():
    print(f"{family:<12} misfit {fit.misfit:.3f}, mean {fit.mean():7.1f} generations")

# %% [markdown]
# Points are runs, lines are distributions. Where a line leaves the points, its family is wrong.

# %%
along = np.geomspace(done[0] / 3, done[-1] * 1.5, 300)
figure, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
shares = js.run_times.shares_done(len(done), num_runs)
ax.plot(done, shares, ".", color="black", label=f"{num_runs} runs")
for family, fit in fits.items():
    ax.plot(along, fit.share_done(along), label=f"{family}: {fit.misfit:.3f}")
ax.set(
    title="Share of the runs of one island that are done",
    xlabel="generations",
    ylabel="share done",
    xscale="log",
    ylim=(0, 1),
)
ax.grid(alpha=0.3)
ax.legend(frameon=False, title="misfit")
plt.show()

# %% [markdown]
# ## What more islands bring
#
# If F is the chance that one island is done by time t, the chance that the first of p is done is
# `1 - (1 - F(t))**p`. `predict` computes the mean of that time, M(p). Next to it stands
# `mean_of_first`, which assumes no family: it draws p of the measured times and takes the shortest.
# The two should agree while p is small compared with the number of runs. (Runs that were cut off
# have no time, so without a family the mean of one may be infinite.)

# %%
best_family = min(fits, key=lambda family: fits[family].misfit)
best = fits[best_family]
islands = [1, 2, 4, 8, 16, 32, 64]
print(f"{best_family} distribution\n\n  p    mean  measured  90% done by    gain")
for one in best.predict(islands):
    measured = js.run_times.mean_of_first(taken, one.runs)
    print(f"{one.runs:>3} {one.mean:7.1f} {measured:9.1f} {one.slow:12.1f} {one.gain:7.1f}")

# %% [markdown]
# The gain is p if times are exponential: twice as many islands are done in half the time. It falls
# behind p once the first island can hardly be any sooner, because even the luckiest one needs some
# generations. It can be above p where islands that fail go on failing for long: of many, one need
# not wait for those.

# %%
many = np.unique(np.geomspace(1, 1024, 14).astype(int))
figure, ax = plt.subplots(figsize=(6, 4.2), layout="constrained")
ax.plot(many, many, color="0.8", linewidth=6, label="p")
for family in ("gamma", "exponential", "lognormal"):
    gains = [one.gain for one in fits[family].predict(many)]
    ax.plot(many, gains, label=family)
few = many[(many > 1) & (many <= num_runs // 5)]
ax.plot(
    few, [best.mean() / js.run_times.mean_of_first(taken, p) for p in few], "k.", label="measured"
)
ax.set(
    title="How much sooner the first of p islands is done",
    xlabel="islands p",
    ylabel="gain M(1) / M(p)",
    xscale="log",
    yscale="log",
    ylim=(0.8, None),
)
ax.grid(alpha=0.3)
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## From generations to seconds
#
# A device should run as many islands as it can side by side. This measures how long a generation of
# the islands above takes here. The program is the one from above, so nothing is compiled.

# %%
limit = 2000
timed = js.solve(problem, search, key=1, num_searches=num_islands, max_steps=limit)
pace = timed.history[-1].seconds / timed.nit
print(f"{num_islands} islands: {1e6 * pace:.0f} microseconds a generation")

# %% [markdown]
# ## How many devices to rent
#
# With d devices, d times as many islands run at the same pace. Time falls; the bill is devices
# times hours. Put in your price. While the gain keeps up with p, more devices cost nothing extra;
# past that point they buy time at a price.

# %%
price = 2.0  # per device and hour, in your currency
devices = [1, 2, 4, 8, 16, 32]
print("devices  islands  mean seconds  90% done by  bill, a million instances")
for number, one in zip(devices, best.predict([num_islands * d for d in devices]), strict=True):
    bill = 1e6 * number * one.mean * pace / 3600 * price
    print(f"{number:>7} {one.runs:>8} {one.mean * pace:13.4f} {one.slow * pace:12.4f} {bill:26.2f}")

# %% [markdown]
# The other way round: how many islands are needed to be done within a given time, nine times out
# of ten?

# %%
for share_of_mean in (1, 0.5, 0.2, 0.1):
    limit = best.mean() * share_of_mean
    needed = best.runs_for(limit, share=0.9)
    print(f"{limit:8.1f} generations ({limit * pace:.3f} s): {needed:4d} islands")

# %% [markdown]
# ## What to keep in mind
#
# - Trust predictions near the times that you measured. For far larger p the earliest runs decide,
#   of which there are few.
# - A fitted gamma or exponential distribution begins at 0, real times do not: the first generations
#   find nothing. So gains for many islands are upper limits.
# - Use your own instance and search: replace `problem`, `search` and the target, and measure again.
#   `js.run` takes and gives costs as `problem.cost` counts them.
