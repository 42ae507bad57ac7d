"""The command line, put together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sparsvm.cli import around, fitting, using
from sparsvm.cli.failure import INTERRUPTED, RUNTIME, Failure
from sparsvm.cli.output import note

# The ancestor of typer's own exceptions, which has had more than one name.
_Refused: Any = typer.BadParameter.mro()[2]


class OneLine(TyperGroup):
    """Commands that return their exit code, and whose errors are one line.

    0: done. 1: not converged, or failed. 2: the command line or a file is wrong. 130: interrupted.
    """

    def main(self, *args: Any, **options: Any) -> Any:
        """Run a command and leave with its exit code."""
        sys.exit(self._code(partial(super().main, *args, **{**options, "standalone_mode": False})))

    def _code(self, run: Callable[[], Any]) -> int:
        try:
            code = run()
        except Failure as failure:
            note(str(failure))
            return failure.code
        except _Refused as refused:
            if refused.format_message():  # no command at all shows the help, which is enough
                note(refused.format_message())
            return int(refused.exit_code)
        except (KeyboardInterrupt, typer.Abort):
            return INTERRUPTED
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError, MemoryError) as error:
            note(str(error) or type(error).__name__)
            return RUNTIME
        return code if isinstance(code, int) else 0


app = typer.Typer(
    name="sparsvm",
    cls=OneLine,
    help="Sparse, exact, certified multiclass support vector machines.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    fitting.fit,
    fitting.cv,
    fitting.path,
    fitting.select,
    using.predict,
    using.report,
    using.inspect,
    using.export,
    around.demo,
    around.reproduce,
):
    app.command()(command)
app.add_typer(around.data, name="data")


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib import import_module

        print(f"sparsvm {import_module('sparsvm').__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show it.")
    ] = False,
) -> None:
    pass
