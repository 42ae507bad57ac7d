"""Sparse, exact, certified multiclass support vector machines."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparsvm._public import *  # noqa: F403

__version__ = "0.1.0"


# Loading scikit-learn and SciPy takes about a second. The help of the command line, and whoever
# wants one room alone, need not wait for it: names are loaded together when one is first used.
def __getattr__(name: str) -> Any:
    if name == "__all__" or not name.startswith("_"):
        public = import_module("sparsvm._public")
        names = getattr(public, "__all__", [])  # not there yet while it is being loaded
        if name == "__all__":
            return names
        if name in names:
            globals().update({each: getattr(public, each) for each in names})
            return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__getattr__("__all__")})
