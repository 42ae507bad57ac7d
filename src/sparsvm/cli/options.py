"""The options that several commands share."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

# The panels of the help.
data_option = partial(typer.Option, rich_help_panel="Data")
model_option = partial(typer.Option, rich_help_panel="Model")
output_option = partial(typer.Option, rich_help_panel="Output")

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="The samples: a CSV, TSV, Parquet, npz or svmlight file, or - for what is piped in.",
    ),
]
ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model that fit or cv wrote.")]
Target = Annotated[
    str | None,
    data_option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="The column of the labels, by name or position (1 is the first, -1 the last).",
    ),
]
Drop = Annotated[
    list[str] | None,
    data_option(metavar="COLUMN", help="A column that is no feature; repeatable."),
]
Format = Annotated[
    str | None,
    data_option(
        metavar="FORMAT",
        help="csv, tsv, parquet, npz or svmlight; else the ending of the file decides.",
    ),
]
Test = Annotated[
    str | None,
    data_option(
        metavar="FILE|SHARE",
        help="Samples to test on: a file, or a share such as 0.25 of DATA to put aside.",
    ),
]
Chunks = Annotated[
    int | None,
    data_option(
        metavar="ROWS",
        min=1,
        help="Read and fit so many rows at a time: for tables larger than memory (CSV, TSV).",
    ),
]
Loss = Annotated[
    str,
    model_option(metavar="NAME", help="hinge, squared_hinge, logistic, ovr_squared_hinge or ramp."),
]
Penalty = Annotated[
    str,
    model_option(
        metavar="NAME", help="l1, l2, elasticnet, l1/l2, l1/linf, sparse_group, l0 or capped_l1."
    ),
]
Alpha = Annotated[
    float | None,
    model_option(min=0.0, help="Strength of the penalty; 1 / number of samples by default."),
]
L1Ratio = Annotated[
    float | None,
    model_option(min=0.0, max=1.0, help="Share of l1 in elasticnet and sparse_group."),
]
Scale = Annotated[
    bool,
    model_option(help="Penalise as if every column had been standardised."),
]
Groups = Annotated[
    str | None,
    model_option(
        metavar="FILE",
        help="Groups of features: lines of 'feature,group', or JSON {group: [features]}.",
    ),
]
Unpenalised = Annotated[
    list[str] | None,
    model_option(metavar="COLUMN", help="A feature without penalty; repeatable."),
]
ClassWeight = Annotated[
    bool,
    model_option("--balanced", help="Give all classes the same total weight."),
]
Tolerance = Annotated[float, model_option(min=0.0, help="Relative duality gap to reach.")]
MaxIter = Annotated[int | None, model_option(min=1, help="Limit on the iterations.")]
Alphas = Annotated[int, model_option("--n-alphas", min=1, help="How many alphas to try.")]
Epsilon = Annotated[
    float,
    model_option(help="Smallest alpha as a share of the largest."),
]
MaxFeatures = Annotated[
    int | None,
    model_option(min=1, help="Use at most so many features."),
]
Seed = Annotated[
    int,
    data_option(help="Decides what is drawn at random, such as --test SHARE."),
]
ModelOutput = Annotated[
    str | None,
    output_option("--output", "-o", metavar="FILE", help="Where the model goes."),
]
TableOutput = Annotated[
    str,
    output_option(
        "--output", "-o", metavar="FILE", help="Where the table goes; - is the standard output."
    ),
]
Report = Annotated[
    str | None,
    output_option(metavar="FILE", help="Write a report, an HTML page."),
]
Json = Annotated[bool, output_option("--json", help="Print one JSON object.")]
Quiet = Annotated[bool, output_option("--quiet", "-q", help="Show no progress.")]
