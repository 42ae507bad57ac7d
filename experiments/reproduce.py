"""Run the experiments, all or by name, and list them with what was found in README.md.

python experiments/reproduce.py                 # all, going on where the last run stopped
python experiments/reproduce.py "004 Fig. 8"    # one
python experiments/reproduce.py --quick         # a few small cells of each, in a minute
python experiments/reproduce.py --list
"""

from __future__ import annotations

import argparse
import importlib
import re
import sys
from pathlib import Path

from harness import HERE, MINUTES, QUICK, RESULTS, VERDICTS, Experiment, markdown_table

PAPERS = {
    "000": "G. Chierchia, N. Pustelnik, J.-C. Pesquet, B. Pesquet-Popescu. A proximal approach for "
    "sparse multiclass SVM, 2015",
    "001": "M. Blondel, K. Seki, K. Uehara. Block coordinate descent algorithms for large-scale "
    "sparse multiclass classification, 2013",
    "002": "J.-C. Pesquet. An epigraphic splitting technique for sparse multiclass SVM (slides of "
    "000), 2015",
    "003": "Y. Nakayama, M. Yamagishi, I. Yamada. A hierarchical convex optimization for "
    "multiclass SVM, 2020",
    "004": "C. S. Ong, L. T. Hoai An. Learning sparse classifiers with difference of convex "
    "functions algorithms, 2013",
}
MODULES = sorted(
    path.stem
    for path in HERE.glob("*.py")
    if re.match(r"p\d{3}_|microarrays$|label_ranking$|few_genes$", path.stem)
)
# Figures that a paper repeats from another.
REPEATED = (("002 losses", "errors and zeros of four losses, as in 000 Fig. 1", "000 Fig. 1"),)
START = "<!-- what follows is written by reproduce.py -->"


def experiments() -> list[tuple[str, Experiment]]:
    """Return every experiment with the name of its module, in the order of the papers."""
    found = []
    for name in MODULES:
        module = importlib.import_module(name)
        every = getattr(module, "EXPERIMENTS", None) or (module.EXPERIMENT,)
        found += [(name, experiment) for experiment in every]
    return sorted(found, key=lambda pair: _order(pair[1].item))


def _order(item: str) -> tuple[str, int, tuple[int, ...]]:
    kinds = [at for at, kind in enumerate(("able ", "Fig.", "Section")) if kind in item]
    number = re.search(r"(?:able|Fig\.|Section) A?([\d.]+)", item)
    digits = tuple(int(part) for part in number[1].split(".")) if number else ()
    return item[:3], kinds[0] if kinds else 0, digits


def _link(stem: str) -> str:
    page = RESULTS / f"{stem}.md"
    return f"[results](results/{page.name})" if page.is_file() else "not run yet"


def readme() -> str:
    """Return the generated part of README.md: one row for each experiment, then the claims."""
    rows, claims = [], []
    for module, experiment in experiments():
        page = RESULTS / f"{experiment.stem}.md"
        links = f"[{module}.py]({module}.py)", _link(experiment.stem)
        rows.append((experiment.item, experiment.title, *links))
        rows += [(item, title, *links) for item, title, at in REPEATED if at == experiment.item]
        if page.is_file():
            for line in page.read_text().splitlines():
                judged = re.match(rf"\| (.*?) \| ({'|'.join(VERDICTS)}) \| (.*) \|", line)
                if judged:
                    claims.append((experiment.item, *judged.groups()))
    rows.sort(key=lambda row: _order(row[0]))
    papers = "\n".join(f"- {number}: {title}." for number, title in PAPERS.items())
    return "\n\n".join(
        (
            START,
            papers,
            markdown_table(("item", "what it shows", "module", ""), rows),
            "## What the papers say, and what was found",
            markdown_table(("item", "claim", "", "number"), claims),
        )
    )


def write_readme() -> None:
    path = HERE / "README.md"
    path.write_text(path.read_text().split(START)[0] + readme() + "\n")
    print(f"wrote {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("items", nargs="*", help='such as "004 Fig. 8"; all by default')
    parser.add_argument("--quick", action="store_true", help="a few small cells of each")
    parser.add_argument("--fresh", action="store_true", help="forget what was measured before")
    parser.add_argument("--so-far", action="store_true", help="show what was measured so far")
    parser.add_argument("--draws", type=int, help="at most so many draws, splits or seeds")
    parser.add_argument("--minutes", type=float, help=f"{MINUTES}, for each experiment")
    parser.add_argument("--output", type=Path, help="folder of CSVs, figures and pages")
    parser.add_argument("--list", action="store_true", help="list the experiments")
    parser.add_argument("--readme", action="store_true", help="only write README.md anew")
    options = parser.parse_args()
    found = experiments()
    unknown = set(options.items) - {experiment.item for _, experiment in found}
    if unknown:
        sys.exit(f"There is no experiment {sorted(unknown)[0]!r}; --list names all.")
    if options.list:
        for module, experiment in found:
            print(f"{experiment.item:14s} {experiment.title}  ({module}.py)")
        return
    if not options.readme:
        output = options.output or (QUICK if options.quick else RESULTS)
        chosen = [e for _, e in found if not options.items or e.item in options.items]
        if options.fresh:  # once, since several experiments may share a table
            for experiment in chosen:
                (output / experiment.table).unlink(missing_ok=True)
        for experiment in chosen:
            experiment.run(
                output,
                quick=options.quick,
                so_far=options.so_far,
                draws=options.draws,
                minutes=options.minutes,
            )
    if not options.quick:
        write_readme()


if __name__ == "__main__":
    main()
