"""From options to an estimator and its data."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparsvm.cli.columns import Wanted
from sparsvm.cli.failure import Failure, listed, nearest
from sparsvm.cli.reading import read_table
from sparsvm.cli.table import Table


@dataclass(frozen=True)
class Choice:
    """The options that say what to fit."""

    loss: str
    penalty: str
    l1_ratio: float | None
    scale: bool
    groups: str | None
    unpenalised: list[str] | None
    balanced: bool
    tol: float
    max_iter: int | None

    def common(self, table: Table) -> dict[str, Any]:
        """Return the parameters that ``SparseSVC`` and ``SparseSVCCV`` share."""
        return {
            **self.problem(table),
            "tol": self.tol,
            "max_iter": self.max_iter,
            "class_weight": "balanced" if self.balanced else None,
        }

    def problem(self, table: Table) -> dict[str, Any]:
        """Return the loss and the penalty."""
        from sparsvm.losses import LOSSES

        _require_known(self.loss, list(LOSSES), "--loss")
        return {"loss": self.loss, "penalty": self._penalty(table)}

    def _penalty(self, table: Table) -> Any:
        from sparsvm.penalties import PENALTIES

        _require_known(self.penalty, list(PENALTIES), "--penalty")
        kind = PENALTIES[self.penalty]
        options: dict[str, Any] = {"weights": self._weights(table)}
        if self.l1_ratio is not None:
            options["l1_ratio"] = self.l1_ratio
        if self.groups is not None:
            options["groups"] = read_groups(self.groups, table.feature_names)
        takes = kind._parameter_names()
        for name in options:
            if name not in takes:
                able = [each for each, one in PENALTIES.items() if name in one._parameter_names()]
                option = "--" + name.replace("_", "-")
                raise Failure(
                    f"{option} does not go with --penalty {self.penalty}; it goes with "
                    f"{listed(able)}."
                )
        return kind(**options)

    def _weights(self, table: Table) -> Any:
        scale = "scale" if self.scale else None
        if not self.unpenalised:
            return scale
        factors = [1.0] * table.X.shape[1]
        names = table.feature_names
        for name in self.unpenalised:
            if name not in names:
                raise Failure(
                    f"--unpenalised {name!r} is no feature of {table.source}{nearest(name, names)}"
                )
            factors[names.index(name)] = 0.0
        return factors if scale is None else (scale, factors)


def _require_known(name: str, known: list[str], option: str) -> None:
    if name not in known:
        raise Failure(f"{option} {name!r} is none of {', '.join(known)}{nearest(name, known)}")


def read_groups(path: str, names: list[str]) -> list[str]:
    """Return one label for each feature; a feature that the file leaves out is its own group."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise Failure(f"{path}: {(error.strerror or 'cannot be read').lower()}.") from None
    except UnicodeDecodeError:
        raise Failure(f"{path} is not UTF-8 text.") from None
    found: dict[str, str] = {}
    known = set(names)
    for where, feature, group in _group_entries(text, path):
        if feature not in known:
            raise Failure(f"{where}: {feature!r} is no feature{nearest(feature, names)}")
        if found.setdefault(feature, group) != group:
            raise Failure(
                f"{where}: {feature!r} is in two groups, {found[feature]!r} and {group!r}; groups "
                "may not overlap here."
            )
    # A prefix keeps the names of groups apart from those of single features.
    return [f"group {found[name]}" if name in found else f"feature {name}" for name in names]


def _group_entries(text: str, path: str) -> list[tuple[str, str, str]]:
    if text.lstrip().startswith("{"):
        try:
            groups = json.loads(text)
        except json.JSONDecodeError as error:
            raise Failure(
                f"{path}, line {error.lineno}, column {error.colno}: {error.msg}."
            ) from None
        return [
            (path, str(name), str(group))
            for group, members in groups.items()
            for name in (members if isinstance(members, list) else [members])
        ]
    mark = "\t" if "\t" in text.partition("\n")[0] else ","
    entries = []
    for number, row in enumerate(csv.reader(text.splitlines(), delimiter=mark), start=1):
        if not row or (
            number == 1 and [cell.strip().lower() for cell in row] == ["feature", "group"]
        ):
            continue
        if len(row) != 2:
            raise Failure(
                f"{path}, line {number}: {len(row)} cells, but 'feature,group' is wanted."
            )
        entries.append((f"{path}, line {number}", row[0].strip(), row[1].strip()))
    return entries


def training_and_test(
    path: str, wanted: Wanted, format: str | None, test: str | None, seed: int
) -> tuple[Table, Table | None]:
    """Read the training samples, and the test samples from their own file or as a share of them."""
    table = read_table(path, wanted, format)
    if table.y is None:
        raise Failure(f"{table.source} has no labels.")
    if test is None:
        return table, None
    share = _share(test)
    if share is not None:
        from sklearn.model_selection import train_test_split

        rows = range(len(table.y))
        try:
            train, kept = train_test_split(
                rows, test_size=share, stratify=table.y, random_state=seed
            )
        except ValueError as error:
            raise Failure(f"--test {test}: {error}") from None
        return table.rows(train), table.rows(kept)
    return table, table_to_test_on(table, wanted, test)


def table_to_test_on(train: Table, wanted: Wanted, test: str | None) -> Table | None:
    """Read test samples from their own file, with the columns of the training samples."""
    if test is None:
        return None
    if _share(test) is not None:
        raise Failure("--test takes a file with --chunks: no share of the rows can be put aside.")
    same = Wanted(wanted.target, True, wanted.drop, train.names, train.X.shape[1])
    return read_table(test, same, None)


def _share(text: str) -> float | None:
    try:
        share = float(text)
    except ValueError:
        return None
    if not 0.0 < share < 1.0:
        raise Failure(f"--test takes a file or a share between 0 and 1; got {text}.")
    return share


def name_features(model: Any, table: Table) -> Any:
    """Give a model the names of its features, which arrays do not carry."""
    import numpy as np

    if table.names is not None:
        model.feature_names_in_ = np.array(table.names, dtype=object)
        if getattr(model, "path_", None) is not None:
            from dataclasses import replace

            model.path_ = replace(model.path_, feature_names=model.feature_names_in_)
    return model
