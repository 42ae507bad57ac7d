"""The command ``sparsvm``: from a table of data to a model, its predictions and its report.

What takes long to load (scikit-learn, SciPy) is imported inside the commands, so that ``--help``
and mistakes in the command line are answered at once.
"""

import sys


def main() -> None:
    """Run the command line: the entry point ``sparsvm``."""
    try:
        from sparsvm.cli.commands import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit(
            f"sparsvm: The command line needs {error.name}, which is not installed: "
            'pip install "sparsvm[cli]".'
        )
    app()
