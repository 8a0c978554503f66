import chex
