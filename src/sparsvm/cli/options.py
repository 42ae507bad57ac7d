"""The options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

DATA = "Data"
MODEL = "Model"
OUTPUT = "Output"

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
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="The column of the labels, by name or position (1 is the first, -1 the last).",
        rich_help_panel=DATA,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="A column that is no feature; repeatable.", rich_help_panel=DATA
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="FORMAT",
        help="csv, tsv, parquet, npz or svmlight; else the ending of the file decides.",
        rich_help_panel=DATA,
    ),
]
Test = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|SHARE",
        help="Samples to test on: a file, or a share such as 0.25 of DATA to put aside.",
        rich_help_panel=DATA,
    ),
]
Chunks = Annotated[
    int | None,
    typer.Option(
        metavar="ROWS",
        min=1,
        help="Read and fit so many rows at a time: for tables larger than memory (CSV, TSV).",
        rich_help_panel=DATA,
    ),
]
Loss = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="hinge, squared_hinge, logistic, ovr_squared_hinge or ramp.",
        rich_help_panel=MODEL,
    ),
]
Penalty = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="l1, l2, elasticnet, l1/l2, l1/linf, sparse_group, l0 or capped_l1.",
        rich_help_panel=MODEL,
    ),
]
Alpha = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        help="Strength of the penalty; 1 / number of samples by default.",
        rich_help_panel=MODEL,
    ),
]
L1Ratio = Annotated[
    float | None,
    typer.Option(
        min=0.0, max=1.0, help="Share of l1 in elasticnet and sparse_group.", rich_help_panel=MODEL
    ),
]
Scale = Annotated[
    bool,
    typer.Option(help="Penalise as if every column had been standardised.", rich_help_panel=MODEL),
]
Groups = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Groups of features: lines of 'feature,group', or JSON {group: [features]}.",
        rich_help_panel=MODEL,
    ),
]
Unpenalised = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN", help="A feature without penalty; repeatable.", rich_help_panel=MODEL
    ),
]
ClassWeight = Annotated[
    bool,
    typer.Option(
        "--balanced", help="Give all classes the same total weight.", rich_help_panel=MODEL
    ),
]
Tolerance = Annotated[
    float, typer.Option(min=0.0, help="Relative duality gap to reach.", rich_help_panel=MODEL)
]
MaxIter = Annotated[
    int | None, typer.Option(min=1, help="Limit on the iterations.", rich_help_panel=MODEL)
]
Alphas = Annotated[
    int, typer.Option("--n-alphas", min=1, help="How many alphas to try.", rich_help_panel=MODEL)
]
Epsilon = Annotated[
    float,
    typer.Option(help="Smallest alpha as a share of the largest.", rich_help_panel=MODEL),
]
MaxFeatures = Annotated[
    int | None,
    typer.Option(min=1, help="Use at most so many features.", rich_help_panel=MODEL),
]
Seed = Annotated[
    int,
    typer.Option(
        help="Decides what is drawn at random, such as --test SHARE.", rich_help_panel=DATA
    ),
]
ModelOutput = Annotated[
    str | None,
    typer.Option(
        "--output", "-o", metavar="FILE", help="Where the model goes.", rich_help_panel=OUTPUT
    ),
]
TableOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where the table goes; - is the standard output.",
        rich_help_panel=OUTPUT,
    ),
]
Report = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Write a report, an HTML page.", rich_help_panel=OUTPUT),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object.", rich_help_panel=OUTPUT)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=OUTPUT)
]
