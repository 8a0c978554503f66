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
# # A data set of N-Queens placements
#
# You make a set of different valid placements, look at how diverse it is, sort out placements that
# are the same board turned or mirrored, and prepare the set for learning. It takes about a minute.

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
# Settings: the size of the board and of the set.

# %%
import jax
import matplotlib.pyplot as plt
import numpy as np

folder = js.enable_compilation_cache()

is_gpu = jax.default_backend() == "gpu"
num_queens, num_placements = (200, 50_000) if is_gpu else (40, 2000)
print(f"{num_placements} placements of {num_queens} queens on {jax.devices()[0].device_kind}")

# %% [markdown]
# ## Eight queens, all of them
#
# A placement is the column of the queen in each row. On a small board one can ask for more
# placements than there are: the call returns all that it finds until the limit.

# %%
small = js.solve_nqueens(8, num_solutions=92, max_seconds=10)
print(small)

# %% [markdown]
# ## Symmetries
#
# A board has eight symmetries: four turns, and each of them mirrored. They turn one placement into
# others that are just as valid.

# %%
images = js.placements.symmetric_images(small.solutions[0])
figure, axes = plt.subplots(2, 4, figsize=(9, 4.8), layout="constrained")
for number, (ax, image) in enumerate(zip(axes.flat, images, strict=True)):
    js.plotting.plot_board(image, ax)
    ax.set_title(f"image {number}", fontsize=10)
figure.suptitle("One placement, turned and mirrored")
plt.show()

# %% [markdown]
# Placements that turn into one another form a class. `canonical` picks one member of the class, the
# same one for all of them, so equal classes are easy to find.

# %%
members = np.array([js.placements.canonical(queens) for queens in small.solutions])
classes, sizes = np.unique(members, axis=0, return_counts=True)
print(f"{len(small.solutions)} placements in {len(classes)} classes of sizes {sizes.tolist()}")

# %% [markdown]
# A class has fewer than eight members if a placement is its own image. Here is one of each class.

# %%
columns = min(len(classes), 6)
rows = -(-len(classes) // columns)
figure, axes = plt.subplots(rows, columns, figsize=(9, 1.7 * rows), layout="constrained")
for ax in axes.flat:
    ax.axis("off")
for ax, queens, size in zip(axes.flat, classes, sizes, strict=False):
    js.plotting.plot_board(queens, ax)
    ax.set_title(f"{size} members", fontsize=9)
figure.suptitle("8 queens: one placement of each class")
plt.show()

# %% [markdown]
# ## A larger set
#
# From many starts at once, queens that are attacked are moved until none is. With
# `distinct="symmetry"` no two placements of the set are images of one another.

# %%
result = js.solve_nqueens(num_queens, num_placements, distinct="symmetry", max_seconds=30)
placements = result.solutions
searching = result.elapsed - result.compile_seconds
print(result)
print(f"\n{len(placements) / searching:,.0f} different placements per second")

# %% [markdown]
# Trust, but count: each placement is a permutation, and no two queens attack each other.

# %%
attacks = js.attacking_pairs(placements)
are_permutations = (np.sort(placements, axis=1) == np.arange(num_queens)).all()
print(f"{placements.shape} {placements.dtype}")
print(f"permutations: {are_permutations}, attacking pairs: {attacks.sum()}")

# %% [markdown]
# The picture of a result is its first placement.

# %%
result.plot()[0].set_title(f"The first placement of {num_queens} queens")
plt.show()

# %% [markdown]
# ## How diverse is it?
#
# A set of near-copies would teach a model little. `diversity` compares the set with independent
# random permutations, which differ in a share of 1 - 1/n of their rows.

# %%
found = js.placements.diversity(placements)
print(f"two placements differ in {found.mean_difference:.2%} of the rows")
print(f"two random permutations  {found.expected_difference:.2%}")
print(f"squares that some placement uses: {found.coverage:.1%}")
print(f"classes: {found.num_classes:,} of {len(placements):,} placements")

# %% [markdown]
# The mean hides the tails: are there any two placements that are close? This counts in how many
# rows pairs of placements agree, next to random permutations. Two independent ones agree in about
# one row.

# %%
rng = np.random.default_rng(0)
some = placements[rng.choice(len(placements), min(len(placements), 1000), replace=False)]
shuffled = rng.permuted(np.tile(np.arange(num_queens), (len(some), 1)), axis=1)


def agreements(boards):
    """Returns in how many rows each two boards have their queen in the same column."""
    same = (boards[:, None] == boards[None]).sum(axis=-1)
    return same[np.triu_indices(len(boards), 1)]


counts = {"the set": agreements(some), "random permutations": agreements(shuffled)}
figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
edges = np.arange(max(values.max() for values in counts.values()) + 2) - 0.5
for name, values in counts.items():
    label = f"{name}, at most {values.max()}"
    ax.hist(values, edges, density=True, histtype="step", linewidth=2, label=label)
ax.set(title="Rows in which two placements agree", xlabel="rows", ylabel="share of pairs")
ax.set_yscale("log")
ax.legend(frameon=False)
plt.show()

# %% [markdown]
# ## Where do the queens stand?
#
# Random permutations use all squares equally often, up to chance. Do valid placements? The eight
# images of each are counted, too, since the set has only one of them.

# %%
used = np.zeros((num_queens, num_queens))
np.add.at(used, (np.arange(num_queens)[None], placements), 1)
turned = [np.rot90(board, turns) for board in (used, used.T) for turns in range(4)]
share = sum(turned) / (8 * len(placements)) * num_queens

figure, ax = plt.subplots(figsize=(5.2, 4.4), layout="constrained")
spread = np.abs(share - 1).max()
shown = ax.imshow(share, cmap="RdBu_r", vmin=1 - spread, vmax=1 + spread)
figure.colorbar(shown, label="times as often as on average")
ax.set(title=f"Squares used by {len(placements):,} placements", xlabel="column", ylabel="row")
plt.show()

# %% [markdown]
# ## Ready for learning
#
# The set has one placement of each class. Turned and mirrored it is up to eight times as large;
# split it first, so that no test board is the image of a training board.

# %%
order = rng.permutation(len(placements))
test, training = np.split(placements[order], [len(placements) // 10])
augmented = np.concatenate([js.placements.symmetric_images(queens) for queens in training])
print(
    f"{len(training):,} for training, {len(augmented):,} with their images, {len(test):,} to test"
)

# %% [markdown]
# A task for a model: complete a board of which only some queens are given. -1 stands for a row
# without a queen.

# %%
is_given = rng.random(augmented.shape) < 0.3
questions = np.where(is_given, augmented, -1)
answers = augmented
print("question:", questions[0][:12], "...")
print("answer:  ", answers[0][:12], "...")

# %% [markdown]
# `np.savez("queens.npz", questions=questions, answers=answers)` keeps it. Columns are small
# integers (`int16`), so a set of a million placements of 100 queens takes 200 MB.
