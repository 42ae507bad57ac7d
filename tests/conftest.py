"""Settings that all tests share."""

import gc

from hypothesis import HealthCheck, settings

# The same examples in every run, and no example is failed for being slow: timing decides nothing.
settings.register_profile(
    "deterministic",
    derandomize=True,
    deadline=None,
    max_examples=80,
    suppress_health_check=[HealthCheck.too_slow],
)
# `make test-all`: fresh examples each time, and many more of them.
settings.register_profile(
    "thorough",
    deadline=None,
    max_examples=2000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("deterministic")


def pytest_unconfigure():
    # The interpreter lets go of these callbacks last, and one of Hypothesis holds, by its globals,
    # everything that pytest has imported: nanobind, which looks before, would report as leaks the
    # problems that test modules keep.
    gc.callbacks[:] = [f for f in gc.callbacks if not f.__module__.startswith("hypothesis")]
