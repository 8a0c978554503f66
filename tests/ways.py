"""The implementations that the default devices of these tests can run."""

import jax
import pytest

ON_GPU = jax.default_backend() == "gpu"
KERNEL = "cuda" if ON_GPU else "interpret"
PORTABLE = (KERNEL,) if ON_GPU else ("native", KERNEL)
FASTEST = PORTABLE[0]
needs_cpu = pytest.mark.skipif(ON_GPU, reason="the default devices are GPUs")
# Until JAX 0.8 the latter.
wide_types = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64
