"""The examples in the docstrings run and print what they say."""

import doctest
import importlib
import pkgutil

import pytest

import sparsvm

MODULES = ["sparsvm"] + [
    module.name
    for module in pkgutil.walk_packages(sparsvm.__path__, "sparsvm.")
    if not module.name.endswith("._core")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


def test_the_estimator_has_an_example():
    assert doctest.testmod(importlib.import_module("sparsvm.estimators.sparse_svc")).attempted
