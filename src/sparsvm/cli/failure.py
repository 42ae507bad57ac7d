"""What went wrong, as one line and an exit code."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

# Exit codes; the last is what shells give a program that Ctrl-C ended.
RUNTIME, USAGE, INTERRUPTED = 1, 2, 130


class Failure(Exception):
    """A sentence for the user; ``code`` is 2 where the command line or its files are at fault."""

    def __init__(self, sentence: str, code: int = USAGE) -> None:
        super().__init__(" ".join(sentence.split()))
        self.code = code


def nearest(name: str, known: Iterable[str]) -> str:
    """Return ``; did you mean 'x'?`` for the name that is most like the given one, or nothing."""
    lower = {each.lower(): each for each in known}
    close = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.5)
    return f"; did you mean {lower[close[0]]!r}?" if close else ""


def listed(names: Sequence[str], most: int = 8) -> str:
    """Return names with commas, the first ones and the last one where there are many."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 2])}, ..., {names[-1]}"
