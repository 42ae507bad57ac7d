"""``data``, ``demo`` and ``reproduce``: what comes with the package and its sources."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sparsvm.cli import options as opt
from sparsvm.cli.failure import RUNTIME, Failure, nearest
from sparsvm.cli.output import require_writable, show_table, tell, write_rows

data = typer.Typer(help="List data sets, and write one as a table.", no_args_is_help=True)

# What scikit-learn bundles; the others are looked for in the folder of SPARSVM_DATA.
BUNDLED = {
    "breast_cancer": "569 tumours, 30 measurements, 2 classes",
    "digits": "1797 images, 64 pixels, 10 classes",
    "iris": "150 flowers, 4 measurements, 3 classes",
    "wine": "178 wines, 13 measurements, 3 classes",
}
FOLDER = {
    "arcene": ("arcene/arcene_train.data", "200 mass spectra, 10000 features, 2 classes"),
    "bupa": ("uci/bupa.data", "345 patients, 6 measurements, 2 classes"),
    "christensen": ("microarray/christensen.npz", "217 tissues, 1413 sites, 3 classes"),
    "coil20": ("coil20/coil20.npz", "1440 images, 1024 pixels, 20 classes"),
    "ionosphere": ("uci/ionosphere.csv", "351 radar returns, 34 features, 2 classes"),
    "leukemia": ("golub_leukemia3/golub3.npz", "72 patients, 7129 genes, 3 classes"),
    "lymphoma": ("microarray/lymphoma.npz", "62 lymphomas, 4026 genes, 3 classes"),
    "madelon": ("madelon/madelon_train.npz", "2600 samples, 500 features, 2 classes"),
    "nci60": ("microarray/nci60.npz", "64 tumours, 6830 genes, 14 classes"),
    "pima": ("uci/pima-indians-diabetes.csv", "768 patients, 8 measurements, 2 classes"),
    "sonar": ("uci/sonar.csv", "208 echoes, 60 bands, 2 classes"),
    "su": ("microarray/su.npz", "102 tissues, 5565 genes, 4 classes"),
    "wpbc": ("uci/wpbc.data", "194 patients, 32 measurements, 2 classes"),
}
SUBSETS = ("arcene", "leukemia", "madelon")
MICROARRAYS = ("christensen", "lymphoma", "nci60", "su")


@data.command("list")
def list_data(as_json: opt.Json = False) -> int:
    """List the data sets that `data export` writes, and whether they are here."""
    from sparsvm.datasets.folder import data_file

    rows = [(name, words, "with scikit-learn") for name, words in BUNDLED.items()]
    for name, (file, words) in FOLDER.items():
        try:
            data_file(file)
            rows.append((name, words, "in SPARSVM_DATA"))
        except FileNotFoundError:
            rows.append((name, words, "not here"))
    if as_json:
        names = ("name", "what", "where")
        tell({"data": [dict(zip(names, row, strict=True)) for row in rows]}, True, [])
    else:
        show_table(["name", "what it is", "where"], rows, n_left=3)
    return 0


@data.command("export")
def export_data(
    name: Annotated[str, typer.Argument(help="A name from `sparsvm data list`.")],
    file: Annotated[str, typer.Argument(metavar="FILE", help="A CSV, TSV or npz file to write.")],
    subset: Annotated[
        str, typer.Option(metavar="PART", help="train, test or all, where the set has them.")
    ] = "all",
    target: Annotated[str, typer.Option(help="Name of the column of labels.")] = "class",
    as_json: opt.Json = False,
) -> int:
    """Write a data set as a table, the labels in the last column.

    sparsvm data export leukemia genes.csv
    """
    whole = file.lower().endswith(".npz")
    require_writable(file, table=not whole)
    bunch = _loaded(name, subset)
    X, y = bunch.data, bunch.target
    if y.dtype.kind in "iu" and getattr(bunch, "target_names", None) is not None:
        labels = [str(label) for label in bunch.target_names]
        y = _named(y, labels)
    given = getattr(bunch, "feature_names", None)
    names = [f"x{j}" for j in range(X.shape[1])] if given is None else [str(n) for n in given]
    if whole:
        import numpy as np

        from sparsvm.io.whole_files import replacing

        with replacing(file) as temporary, open(temporary, "wb") as stream:
            np.savez_compressed(stream, X=X, y=y, feature_names=np.array(names))
    else:
        # Whole numbers are written as such.
        rows = ([*(f"{v:.17g}" for v in row), label] for row, label in zip(X, y, strict=True))
        write_rows(file, [*names, target], rows)
    facts = {"files": [file], "samples": int(X.shape[0]), "features": int(X.shape[1])}
    tell(facts, as_json, [(file, f"{X.shape[0]} samples, {X.shape[1]} features, {target!r} last")])
    return 0


def _named(y: Any, labels: list[str]) -> Any:
    import numpy as np

    return np.array(labels)[y] if int(y.min()) >= 0 and int(y.max()) < len(labels) else y


def _loaded(name: str, subset: str) -> Any:
    if name in BUNDLED:
        from sklearn import datasets

        return getattr(datasets, f"load_{name}")()
    if name not in FOLDER:
        known = sorted([*BUNDLED, *FOLDER])
        raise Failure(
            f"There is no data set {name!r}{nearest(name, known)} See `sparsvm data list`."
        )
    import sparsvm.datasets as own

    try:
        if name in MICROARRAYS:
            return own.load_microarray(name)
        if name in SUBSETS:
            return getattr(own, f"load_{name}")(subset=subset)
        return own.load_coil20() if name == "coil20" else own.load_uci(name)
    except FileNotFoundError as error:
        raise Failure(str(error), RUNTIME) from None


def demo(
    seed: Annotated[int, typer.Option(help="Another split of the data.")] = 0,
    digits: Annotated[int, typer.Option(min=50, max=1500, help="Images to learn from.")] = 200,
    output: Annotated[
        str, typer.Option(metavar="FILE", help="Where the picture goes.")
    ] = "demo.png",
    report: Annotated[
        str, typer.Option(metavar="FILE", help="Where the report goes.")
    ] = "demo_report.html",
) -> int:
    """Compare with scikit-learn on digits and wine, draw what each class uses, write a report."""
    from sparsvm.demo.run import main

    main(["--seed", str(seed), "--digits", str(digits), "--output", output, "--report", report])
    return 0


def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help='Experiments, such as "000 Table 1"; all by default.')
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few small cells of each.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Only list the experiments.")] = False,
) -> int:
    """Repeat the tables and figures of the papers; needs a clone of the sources.

    sparsvm reproduce --list
    """
    script = _experiments()
    if script is None:
        raise Failure(
            "The experiments are part of the sources, not of the installed package; run this "
            "command inside a clone of the repository.",
            RUNTIME,
        )
    more = [option for option, given in (("--quick", quick), ("--list", show)) if given]
    return subprocess.run([sys.executable, str(script), *(names or []), *more]).returncode


def _experiments() -> Path | None:
    """Return the script that runs them: of the folder we are in, or of the sources we run from."""
    here = Path.cwd().resolve()
    package = Path(__file__).resolve().parents[3]
    for root in (here, *here.parents, package):
        script = root / "experiments" / "reproduce.py"
        if script.is_file() and (root / "src" / "sparsvm").is_dir():
            return script
    return None
