"""``fit``, ``cv``, ``path`` and ``select``: commands that learn from a table."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Annotated, Any

from sparsvm.cli import options as opt
from sparsvm.cli.building import Choice, name_features, table_to_test_on, training_and_test
from sparsvm.cli.chunks import stored_table
from sparsvm.cli.columns import Wanted
from sparsvm.cli.facts import features_of, model_facts, model_lines
from sparsvm.cli.failure import RUNTIME, Failure
from sparsvm.cli.output import (
    require_writable,
    show_progress,
    show_table,
    tell,
    warnings_told,
    write_rows,
)
from sparsvm.cli.table import Table

# Alphas of a path unless the user says how many: half as many as SparseSVCCV tries.
N_ALPHAS = 50


def fit(
    data: opt.Data,
    target: opt.Target = None,
    output: opt.ModelOutput = None,
    report: opt.Report = None,
    test: opt.Test = None,
    drop: opt.Drop = None,
    format: opt.Format = None,
    loss: opt.Loss = "hinge",
    penalty: opt.Penalty = "l1",
    alpha: opt.Alpha = None,
    l1_ratio: opt.L1Ratio = None,
    scale: opt.Scale = True,
    groups: opt.Groups = None,
    unpenalised: opt.Unpenalised = None,
    balanced: opt.ClassWeight = False,
    tol: opt.Tolerance = 1e-3,
    max_iter: opt.MaxIter = None,
    chunks: opt.Chunks = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> int:
    """Fit a model at one alpha.

    sparsvm fit genes.csv --target class --alpha 0.1 --output model.safetensors
    """
    choice = Choice(loss, penalty, l1_ratio, scale, groups, unpenalised, balanced, tol, max_iter)
    require_writable(output, report)
    wanted = Wanted(target, True, tuple(drop or ()))
    with _samples(data, wanted, format, test, seed, chunks) as (train, held):
        if train.stored:
            from sparsvm.partitioned import SparseSVC
        else:
            from sparsvm.estimators import SparseSVC
        with warnings_told() as short:
            model = SparseSVC(alpha=alpha, **choice.common(train))
            seconds = _fitted(model, train, "fitting", quiet or as_json, chunks)
            return _finish(model, train, held, seconds, output, report, as_json, short)


def cv(
    data: opt.Data,
    target: opt.Target = None,
    output: opt.ModelOutput = None,
    report: opt.Report = None,
    test: opt.Test = None,
    drop: opt.Drop = None,
    format: opt.Format = None,
    loss: opt.Loss = "hinge",
    penalty: opt.Penalty = "l1",
    n_alphas: opt.Alphas = N_ALPHAS,
    eps: opt.Epsilon = 1e-3,
    max_features: opt.MaxFeatures = None,
    folds: Annotated[
        int | None,
        opt.model_option(min=2, help="Number of folds; five by default."),
    ] = None,
    rule: Annotated[
        str,
        opt.model_option(
            metavar="RULE", help="best, or 1se: the sparsest within one standard error of the best."
        ),
    ] = "best",
    l1_ratio: opt.L1Ratio = None,
    scale: opt.Scale = True,
    groups: opt.Groups = None,
    unpenalised: opt.Unpenalised = None,
    balanced: opt.ClassWeight = False,
    tol: opt.Tolerance = 1e-3,
    max_iter: opt.MaxIter = None,
    jobs: Annotated[int | None, opt.model_option(help="Folds at the same time.")] = None,
    stability: Annotated[
        bool,
        opt.output_option(
            "--stability",
            help="Show in the report how often each feature is selected from resamples.",
        ),
    ] = False,
    chunks: opt.Chunks = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> int:
    """Choose alpha by cross-validation and fit.

    sparsvm cv genes.csv --target class --output model.safetensors --report report.html
    """
    choice = Choice(loss, penalty, l1_ratio, scale, groups, unpenalised, balanced, tol, max_iter)
    if stability and report is None:
        raise Failure("--stability is shown in a report; say where with --report FILE.")
    require_writable(output, report)
    wanted = Wanted(target, True, tuple(drop or ()))
    options = {"n_alphas": n_alphas, "eps": eps, "max_features": max_features, "cv": folds}
    if chunks is not None and stability:
        raise Failure("--stability draws from all rows at once; leave it or --chunks out.")
    with _samples(data, wanted, format, test, seed, chunks) as (train, held):
        model = _cross_validated(train, choice, rule=rule, n_jobs=jobs, **options)
        if not train.stored:
            model.set_params(verbose=show_progress(quiet or as_json))
        with warnings_told() as short:
            words = "cross-validating" if train.stored else None
            seconds = _fitted(model, train, words, quiet or as_json, chunks)
            stable = _stable(train, choice, max_features, seed, quiet) if stability else None
            return _finish(model, train, held, seconds, output, report, as_json, short, stable)


def path(
    data: opt.Data,
    target: opt.Target = None,
    output: Annotated[
        str | None,
        opt.output_option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write every weight of the path: alpha, feature, class, weight.",
        ),
    ] = None,
    report: opt.Report = None,
    test: opt.Test = None,
    drop: opt.Drop = None,
    format: opt.Format = None,
    loss: opt.Loss = "hinge",
    penalty: opt.Penalty = "l1",
    n_alphas: opt.Alphas = 20,
    eps: opt.Epsilon = 1e-2,
    max_features: opt.MaxFeatures = None,
    l1_ratio: opt.L1Ratio = None,
    scale: opt.Scale = True,
    groups: opt.Groups = None,
    unpenalised: opt.Unpenalised = None,
    balanced: opt.ClassWeight = False,
    tol: opt.Tolerance = 1e-3,
    max_iter: opt.MaxIter = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> int:
    """Follow the solutions from the sparsest model down to small alphas.

    sparsvm path genes.csv --target class --output path.csv
    """
    choice = Choice(loss, penalty, l1_ratio, scale, groups, unpenalised, balanced, tol, max_iter)
    require_writable(output, table=True)
    require_writable(report)
    wanted = Wanted(target, True, tuple(drop or ()))
    train, held = training_and_test(data, wanted, format, test, seed)
    from sparsvm.estimators.svm_path import svm_path

    with warnings_told() as short:
        with _spinning("following the path", quiet):
            options: dict[str, Any] = {"n_alphas": n_alphas, "eps": eps}
            found = svm_path(
                train.X, train.y, max_features=max_features, **options, **choice.common(train)
            )
        missed = sum(status != "optimal" for status in found.statuses)
        accuracies = None if held is None else found.score(held.X, held.y).tolist()
        if output is not None:
            write_rows(output, ("alpha", "feature", "class", "weight"), _path_rows(found, train))
        if report is not None:
            _write_report(_named_path(found, train), held, report, output, train)
    if as_json:
        tell(
            {
                "alphas": found.alphas,
                "selected": found.n_selected,
                "nonzeros": found.nonzeros,
                "objectives": found.objectives,
                "gaps": found.gaps,
                "statuses": list(found.statuses),
                "accuracies": accuracies,
                "files": [name for name in (output, report) if name],
            },
            True,
            [],
        )
    else:
        headings = ["alpha", "features", "weights", "objective", "gap"]
        rows = [
            [f"{a:.4g}", f"{k}", f"{w}", f"{value:.5g}", f"{gap:.0e}"]
            for a, k, w, value, gap in zip(
                found.alphas,
                found.n_selected,
                found.nonzeros,
                found.objectives,
                found.gaps,
                strict=True,
            )
        ]
        if accuracies is not None:
            headings.append("accuracy")
            rows = [[*row, f"{100 * a:.1f} %"] for row, a in zip(rows, accuracies, strict=True)]
        show_table(headings, rows, n_left=0)
    return RUNTIME if short or missed else 0


def _cross_validated(train: Table, choice: Choice, **options: Any) -> Any:
    if train.stored:
        from sparsvm.partitioned import SparseSVCCV
    else:
        from sparsvm.estimators.cv import SparseSVCCV
    return SparseSVCCV(**options, **choice.common(train))


@contextmanager
def _samples(
    data: str, wanted: Wanted, format: str | None, test: str | None, seed: int, chunks: int | None
) -> Iterator[tuple[Table, Table | None]]:
    """Give training and test samples, the former mapped from a file if read by chunks."""
    if chunks is None:
        yield training_and_test(data, wanted, format, test, seed)
        return
    with stored_table(data, wanted, format, chunks) as train:
        yield train, table_to_test_on(train, wanted, test)


def _fitted(
    model: Any, train: Table, words: str | None, quiet: bool, chunks: int | None = None
) -> float:
    began = time.perf_counter()
    with nullcontext() if words is None else _spinning(words, quiet):
        if train.stored:
            from sparsvm.partitioned import split_rows

            model.fit(split_rows(train.X, train.y, rows=chunks))
        else:
            model.fit(train.X, train.y)
    name_features(model, train)
    return time.perf_counter() - began


def _spinning(words: str, quiet: bool) -> Any:
    """Show that something is going on, where somebody watches."""
    if not show_progress(quiet):
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(f"{words} ...")


def _finish(
    model: Any,
    train: Table,
    held: Table | None,
    seconds: float,
    output: str | None,
    report: str | None,
    as_json: bool,
    short: list[bool],
    stability: Any = None,
) -> int:
    """Write the files, tell what was found, and return the exit code."""
    facts = {**model_facts(model), "samples": int(train.X.shape[0]), "seconds": seconds}
    if held is not None:
        facts["test_samples"] = int(held.X.shape[0])
        facts["test_accuracy"] = float((model.predict(held.X) == held.y).mean())
    if output is not None:
        from sparsvm.io import save_model

        save_model(model, output)
    if report is not None:
        _write_report(model, held, report, output, train, stability)
    facts["files"] = [name for name in (output, report) if name is not None]
    converged = bool(facts["converged"]) and not short
    lines = model_lines(model, facts, None if train.stored else train.X)
    if not as_json and output is None and report is None:
        lines.append(("files", "none; keep the model with --output model.safetensors"))
    tell(facts, as_json, lines)
    return 0 if converged else RUNTIME


def _write_report(
    model: Any,
    held: Table | None,
    report: str,
    output: str | None,
    train: Table,
    stability: Any = None,
) -> None:
    from sparsvm.reporting import report as write

    X, y = (None, None) if held is None else (held.X, held.y)
    file = output if output is not None and hasattr(model, "predict") else "model.safetensors"
    title = f"{_stem(train.source)}: {_kind(model)}"
    write(model, X, y, report, stability=stability, title=title, model_file=file)


def _stem(source: str) -> str:
    return "Samples" if source == "the standard input" else source.replace("\\", "/").split("/")[-1]


def _kind(model: Any) -> str:
    return f"{len(getattr(model, 'classes_', getattr(model, 'classes', ())))} classes"


def _named_path(found: Any, train: Table) -> Any:
    from dataclasses import replace

    import numpy as np

    names = None if train.names is None else np.array(train.names, dtype=object)
    return replace(found, feature_names=names)


def _path_rows(found: Any, train: Table) -> Any:
    """Yield the non-zero weights of every model on the path."""
    names = train.feature_names
    labels = found.classes[1:] if found.coefs[0].shape[0] == 1 else found.classes
    for alpha, coef in zip(found.alphas, found.coefs, strict=True):
        entries = coef.tocoo()
        for k, j, weight in zip(entries.row, entries.col, entries.data, strict=True):
            yield f"{alpha:.10g}", names[j], labels[k], repr(float(weight))


def select(
    data: opt.Data,
    target: opt.Target = None,
    output: Annotated[
        str | None,
        opt.output_option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the table with the selected columns and the labels.",
        ),
    ] = None,
    max_features: opt.MaxFeatures = None,
    stability: Annotated[
        bool,
        opt.model_option(
            "--stability",
            help="Keep what is selected from three quarters of the halves of the samples.",
        ),
    ] = False,
    drop: opt.Drop = None,
    format: opt.Format = None,
    loss: opt.Loss = "hinge",
    penalty: opt.Penalty = "l1/l2",
    alpha: Annotated[
        float | None,
        opt.model_option(
            min=0.0, help="Strength of the penalty; chosen by cross-validation by default."
        ),
    ] = None,
    l1_ratio: opt.L1Ratio = None,
    scale: opt.Scale = True,
    groups: opt.Groups = None,
    unpenalised: opt.Unpenalised = None,
    balanced: opt.ClassWeight = False,
    tol: opt.Tolerance = 1e-3,
    max_iter: opt.MaxIter = None,
    seed: opt.Seed = 0,
    as_json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> int:
    """Select features: the columns that a sparse model uses, strongest first.

    sparsvm select genes.csv --target class --max-features 20 --output few_genes.csv
    """
    choice = Choice(loss, penalty, l1_ratio, scale, groups, unpenalised, balanced, tol, max_iter)
    require_writable(output, table=True)
    wanted = Wanted(target, True, tuple(drop or ()))
    train, _ = training_and_test(data, wanted, format, None, 0)
    with warnings_told() as short:
        if stability:
            if alpha is not None:
                raise Failure(
                    "--stability follows whole paths, so that --alpha does not go with it."
                )
            kept = _stable(train, choice, max_features, seed, quiet)
            shares = kept.selection_probabilities_
            used = sorted(kept.selected_features_, key=lambda j: -shares[j])
            sizes, measure = [float(shares[j]) for j in used], "share of the halves"
            facts: dict[str, Any] = {"bounds": kept.error_bounds()}
            end = ""
        else:
            model = _selecting(train, choice, alpha, max_features, quiet)
            rows = features_of(model, train.X)
            used, sizes = [row["position"] for row in rows], [row["size"] for row in rows]
            measure, facts = "weight × deviation", {"alpha": float(model.alpha_)}
            end = f", at alpha = {model.alpha_:.4g}"
        if not used:
            raise Failure("No feature was selected; allow more, or give a smaller alpha.", RUNTIME)
        if output is not None:
            _write_selected(output, train, target, [int(j) for j in used])
    names = [train.feature_names[j] for j in used]
    if as_json:
        files = [] if output is None else [output]
        of = int(train.X.shape[1])
        tell({**facts, "selected": names, "sizes": sizes, "of": of, "files": files}, True, [])
    else:
        table = [[name, f"{size:.4g}"] for name, size in zip(names, sizes, strict=True)]
        show_table(["feature", measure], table)
        print(f"{len(names)} of {train.X.shape[1]} features{end}")
    return RUNTIME if short else 0


def _stable(train: Table, choice: Choice, max_features: int | None, seed: int, quiet: bool) -> Any:
    """Select features from halves of the samples."""
    from sparsvm.estimators import SparseSVC
    from sparsvm.estimators.stability import StabilitySelection

    limit = "auto" if max_features is None else max_features
    model = SparseSVC(**choice.common(train))
    stable = StabilitySelection(model, max_features=limit, random_state=seed)
    with _spinning("selecting from resamples", quiet):
        stable.fit(train.X, train.y)
    return stable


def _selecting(
    train: Table, choice: Choice, alpha: float | None, max_features: int | None, quiet: bool
) -> Any:
    """Return a fitted model of at most ``max_features`` features."""
    from sparsvm.estimators import SparseSVC
    from sparsvm.estimators.selector import SparseSelector

    if alpha is None:
        model = _cross_validated(train, choice, n_alphas=N_ALPHAS, max_features=max_features)
        model.set_params(verbose=show_progress(quiet))
        _fitted(model, train, None, quiet)
        return model
    selector = SparseSelector(SparseSVC(alpha=alpha, **choice.common(train)), max_features)
    with _spinning("fitting", quiet):
        selector.fit(train.X, train.y)
    return name_features(selector.estimator_, train)


def _write_selected(path: str, train: Table, target: str | None, positions: list[int]) -> None:
    import scipy.sparse as sp

    kept = sorted(positions)
    X = train.X[:, kept]
    X = X.toarray() if sp.issparse(X) else X
    names = train.feature_names
    label = target if target is not None and not target.lstrip("-").isdecimal() else "target"
    rows = ([*map(repr, row), y] for row, y in zip(X.tolist(), train.y.tolist(), strict=True))
    write_rows(path, [*(names[j] for j in kept), label], rows)
