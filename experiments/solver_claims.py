"""What 001 says about its algorithms (section 5.2), judged by the runs of p001_solvers."""

from __future__ import annotations

from harness import pick, values, verdict

# isort: split

import numpy as np

ALGORITHMS = ("BCD (LS)", "BCD (CST)", "FISTA (LS)", "FISTA (CST)", "SpaRSA", "FOBOS")
SHRINKING = "BCD (LS), shrinking"
STEPS = (0.1, 1.0, 10.0, 100.0)  # FOBOS's first step, in the table of section 5.2
OPTIMUM = "default"
COUNTED = "BCD (LS), steps counted"
TARGETS = (1.0, 1e-1, 1e-2)  # distances to the optimum that are timed
TIE = 1.1  # the ratio of seconds up to which two runs have tied: there is one of each


def runs_of(rows, name, lam, solver):
    return pick(rows, data=name, solver=solver, **{"lambda": lam})


def least_objective(rows, name, lam):
    """The least objective that any solver reached."""
    return min(values(rows, "objective", data=name, **{"lambda": lam}))


def distances_of(rows, name, lam, solver):
    """Seconds and relative distances to the best objective known."""
    chosen = runs_of(rows, name, lam, solver)
    best = least_objective(rows, name, lam)
    seconds = np.array(values(chosen, "seconds"))
    return seconds, np.array(values(chosen, "objective")) / best - 1.0


def reached(rows, name, lam, solver, target):
    """Seconds until the distance is below the target, None if it never is."""
    seconds, distances = distances_of(rows, name, lam, solver)
    below = np.flatnonzero(distances <= target)
    return float(seconds[below[0]]) if below.size else None


def distances_at_end(rows, name, lam):
    """Relative distance of every algorithm when the first of them ended its run."""
    runs = {s: distances_of(rows, name, lam, s) for s in ALGORITHMS if runs_of(rows, name, lam, s)}
    end = min(seconds[-1] for seconds, _ in runs.values())
    return {s: float(d[np.flatnonzero(t <= end)[-1]]) for s, (t, d) in runs.items()}


def pairs_of(rows):
    return list(dict.fromkeys((row["data"], row["lambda"]) for row in rows))


def in_words(rows, names, compare, pairs=None):
    """Judge a sentence on every data set and lambda; ``compare`` gets distances at the end."""
    true, told = [], []
    for name, lam in pairs or pairs_of(rows):
        ends = distances_at_end(rows, name, lam)
        if not set(names) <= set(ends):
            return "not testable here", "a solver was not run"
        true.append(compare(ends))
        shown = ", ".join(f"{s} {ends[s]:.1e}" for s in names)
        told.append(f"{name}, {lam:g}: {shown}")
    return ("confirmed" if all(true) else "refuted"), (
        "distance when the first run ended, " + "; ".join(told)
    )


def faster(rows, first, *others):
    """Judge whether ``first`` is the fastest to the least distance that any of them reached."""
    true, told = [], []
    for name, lam in pairs_of(rows):
        if not all(runs_of(rows, name, lam, s) for s in (first, *others)):
            return "not testable here", "a solver was not run"
        for target in reversed(TARGETS):
            times = {s: reached(rows, name, lam, s, target) for s in (first, *others)}
            if any(time is not None for time in times.values()):
                break
        if all(time is None for time in times.values()):
            ends = distances_at_end(rows, name, lam)
            true.append(all(ends[first] <= ends[s] for s in others))
            shown = ", ".join(f"{s} {ends[s]:.1e}" for s in times)
            told.append(f"{name}, {lam:g}, distance when the first run ended: {shown}")
            continue
        taken = {s: np.inf if time is None else time for s, time in times.items()}
        least = min(taken[s] for s in others)
        tie = max(taken[first], least) <= TIE * min(taken[first], least)
        true.append(None if tie else taken[first] < least)
        shown = ", ".join(f"{s} {'–' if t is None else f'{t:.1f} s'}" for s, t in times.items())
        told.append(f"{name}, {lam:g}, to {target:g}: {shown}")
    return verdict(true), "; ".join(told)


def bcd_wins(rows):
    return faster(rows, "BCD (LS)", "FISTA (LS)", "SpaRSA")


def bcd_and_fobos(rows):
    names = ("BCD (LS)", "FOBOS")
    pairs = [pair for pair in pairs_of(rows) if pair[0] == "news20"]
    return in_words(rows, names, lambda d: d["BCD (LS)"] < d["FOBOS"], pairs)


def fobos_comparable(rows):
    names = ("BCD (LS)", "FOBOS")
    pairs = [pair for pair in pairs_of(rows) if pair[0] == "mnist"]
    if not pairs:
        return "not testable here", "mnist was not run"
    return in_words(rows, names, lambda d: 0.5 <= d["FOBOS"] / d["BCD (LS)"] <= 2.0, pairs)


def line_search_helps(rows):
    return faster(rows, "BCD (LS)", "BCD (CST)")


def constant_fista_worse(rows):
    return faster(rows, "FISTA (LS)", "FISTA (CST)")


def fista_ahead_of_sparsa(rows):
    return faster(rows, "FISTA (LS)", "SpaRSA")


def fobos_dense(rows):
    true, told = True, []
    for name, lam in pairs_of(rows):
        ends = {s: runs_of(rows, name, lam, s) for s in ("BCD (LS)", "FOBOS")}
        if not all(ends.values()):
            return "not testable here", "needs both solvers"
        shares = {s: 100 * r[-1]["rows"] for s, r in ends.items()}
        true &= shares["FOBOS"] > shares["BCD (LS)"]
        told.append(f"{name}, {lam:g}: BCD {shares['BCD (LS)']:.1f}, FOBOS {shares['FOBOS']:.1f} %")
    return ("confirmed" if true else "refuted"), "; ".join(told)


def slower_to_sparsity(rows):
    """Compare the rows at the time at which BCD has come within a tenth of the optimum's."""
    true, told = True, []
    for name, lam in pairs_of(rows):
        runs = {s: runs_of(rows, name, lam, s) for s in ("BCD (LS)", "FISTA (LS)", "SpaRSA")}
        optimum = runs_of(rows, name, lam, OPTIMUM)
        if not all(runs.values()) or not optimum:
            return "not testable here", "a solver was not run"
        own = runs["BCD (LS)"]
        far = [at for at, r in enumerate(own) if r["rows"] > 1.1 * optimum[0]["rows"]]
        at = own[min(max(far, default=-1) + 1, len(own) - 1)]["seconds"]
        found = {
            s: 100 * [r["rows"] for r in run if r["seconds"] <= at][-1] for s, run in runs.items()
        }
        true &= found["BCD (LS)"] < min(found["FISTA (LS)"], found["SpaRSA"])
        shown = ", ".join(f"{s} {v:.1f}" for s, v in found.items())
        told.append(f"{name}, {lam:g}, after {at:.1f} s: {shown}")
    return ("confirmed" if true else "refuted"), "rows in %, " + "; ".join(told)


def two_phases(rows):
    true, told = True, []
    for name, lam in pairs_of(rows):
        shares = 100 * np.array(values(runs_of(rows, name, lam, "BCD (LS)"), "rows"))
        true &= bool(shares[-1] < shares.max())
        told.append(f"{name}, {lam:g}: up to {shares.max():.1f}, then {shares[-1]:.1f} %")
    return ("confirmed" if true else "refuted"), "; ".join(told)


def _seconds_near(run, optimum):
    """Seconds from which the rows stay within a tenth of the optimum's; infinite if they do not."""
    far = [at for at, row in enumerate(run) if abs(row["rows"] / optimum["rows"] - 1.0) > 0.1]
    at = max(far, default=-1) + 1
    return run[at]["seconds"] if at < len(run) else np.inf


def first_to_sparsity(rows):
    """Whether BCD's rows are the first near the optimum's; undecided where none come near."""
    true, told = [], []
    for name, lam in pairs_of(rows):
        optimum = runs_of(rows, name, lam, OPTIMUM)
        runs = {s: runs_of(rows, name, lam, s) for s in ALGORITHMS}
        runs = {s: run for s, run in runs.items() if run}
        if not optimum or len(runs) < 2:
            return "not testable here", "the optimum or the algorithms were not run"
        times = {s: _seconds_near(run, optimum[0]) for s, run in runs.items()}
        first = sorted(times, key=times.get)[:2]
        if np.isfinite(times[first[0]]):
            shown = ", ".join(
                f"{s} {times[s]:.1f} s" if np.isfinite(times[s]) else f"{s} –" for s in first
            )
            told.append(f"{name}, {lam:g}: {shown}")
            true.append(first[0].startswith("BCD"))
        else:
            off = {s: abs(run[-1]["rows"] - optimum[0]["rows"]) for s, run in runs.items()}
            first = sorted(off, key=off.get)[:2]
            shown = " and ".join(f"{s} {100 * off[s]:.1f}" for s in first)
            told.append(f"{name}, {lam:g}: none so near, at the end {shown} points off")
            true.append(None if first[0].startswith("BCD") else False)
    return verdict(true), ("the first two within a tenth of the optimum's rows, " + "; ".join(told))


def same_rows_in_the_limit(rows):
    """On the problems that all three solve to a hundredth: rows within a tenth of BCD's."""
    names, true, told = ("BCD (LS)", "FISTA (LS)", "SpaRSA"), [], []
    for name, lam in pairs_of(rows):
        if not all(runs_of(rows, name, lam, s) for s in names):
            continue
        if any(distances_of(rows, name, lam, s)[1][-1] > 0.01 for s in names):
            continue
        shares = {s: 100 * runs_of(rows, name, lam, s)[-1]["rows"] for s in names}
        true.append(all(abs(shares[s] / shares["BCD (LS)"] - 1.0) <= 0.1 for s in names))
        told.append(f"{name}, {lam:g}: " + ", ".join(f"{s} {v:.2f}" for s, v in shares.items()))
    if not true:
        return "not testable here", "no problem on which all three come within 1 % of the optimum"
    return ("confirmed" if all(true) else "refuted"), "rows in %, " + "; ".join(told)


def on_rcv1(rows):
    return "not testable here", "RCV1 could not be had"


def accuracy_first(rows):
    """Compare the seconds until the accuracy is within a point of that of the optimum.

    Where BCD is that near when it is first looked at, it may have been before.
    """
    true, told = [], []
    for name, lam in pairs_of(rows):
        optimum = runs_of(rows, name, lam, OPTIMUM)
        runs = {s: runs_of(rows, name, lam, s) for s in ("BCD (LS)", "FISTA (LS)", "SpaRSA")}
        if not optimum or not all(runs.values()):
            return "not testable here", "a solver was not run"
        wanted = optimum[0]["accuracy"] - 0.01
        times = {
            s: min((r["seconds"] for r in run if r["accuracy"] >= wanted), default=np.inf)
            for s, run in runs.items()
        }
        first = times["BCD (LS)"] <= min(times.values()) < np.inf
        at_once = times["BCD (LS)"] == runs["BCD (LS)"][1]["seconds"]
        true.append(True if first else None if at_once else False)
        shown = ", ".join(
            f"{s} {t:.1f} s" if np.isfinite(t) else f"{s} –" for s, t in times.items()
        )
        told.append(f"{name}, {lam:g}: {shown}")
    return verdict(true), (
        "seconds until within a point of the optimum's accuracy, " + "; ".join(told)
    )


def search_matters_more_to_fista(rows):
    """Compare what is left without a line search over what is left with it, at the same time."""
    true, told = [], []
    for name, lam in pairs_of(rows):
        ends = distances_at_end(rows, name, lam)
        if not {"BCD (LS)", "BCD (CST)", "FISTA (LS)", "FISTA (CST)"} <= set(ends):
            return "not testable here", "a solver was not run"
        ratios = {s: ends[f"{s} (CST)"] / ends[f"{s} (LS)"] for s in ("BCD", "FISTA")}
        true.append(ratios["BCD"] < ratios["FISTA"])
        told.append(f"{name}, {lam:g}: BCD {ratios['BCD']:.1f}, FISTA {ratios['FISTA']:.1f}")
    return ("confirmed" if all(true) else "refuted"), (
        "distance without over distance with a line search, when the first run ended, "
        + "; ".join(told)
    )


def last_of(rows, solver, lam):
    seconds, distances = distances_of(rows, "news20", lam, solver)
    return (float(distances[-1]), float(seconds[-1])) if distances.size else None


def no_shrinking(rows):
    told, true = [], True
    for lam in (1e-3, 1e-5):
        plain, shrunk = (last_of(rows, s, lam) for s in ("BCD (LS)", SHRINKING))
        if plain is None or shrunk is None:
            return "not testable here", "needs both"
        true &= 0.5 <= shrunk[0] / plain[0] <= 2.0
        told.append(f"{lam:g}: distance {plain[0]:.1e} without, {shrunk[0]:.1e} with")
    return ("confirmed" if true else "refuted"), "news20, " + "; ".join(told)


def step_matters(rows):
    found = {}
    for eta in STEPS:
        last = last_of(rows, f"FOBOS, eta0 = {eta:g}", 1e-3)
        if last is not None:
            found[eta] = last[0]
    if len(found) < len(STEPS):
        return "not testable here", "not all steps were tried"
    shown = ", ".join(f"{eta:g}: {distance:.1e}" for eta, distance in found.items())
    crucial = max(found.values()) > 2.0 * min(found.values())
    return ("confirmed" if crucial else "refuted"), f"distance by first step, {shown}"


def slow_at_small_lambda(rows):
    large, small = (last_of(rows, "BCD (LS)", lam) for lam in (1e-3, 1e-5))
    if large is None or small is None:
        return "not testable here", "needs both values of lambda"
    shown = "distance " + ", ".join(
        f"{distance:.1e} after {seconds:.0f} s at {lam:g}"
        for lam, (distance, seconds) in ((1e-3, large), (1e-5, small))
    )
    return ("confirmed" if small[0] > 10.0 * large[0] else "refuted"), shown


def first_steps(rows):
    told, true = [], []
    for name, lam in pairs_of(rows):
        for row in runs_of(rows, name, lam, COUNTED):
            share = row["first_steps"] / row["line_searches"]
            true.append(share > 0.5)
            told.append(f"{name}, {lam:g}: {share:.2%} of {row['line_searches']}")
    if not told:
        return "not testable here", "not run"
    return ("confirmed" if all(true) else "refuted"), "searches that did, " + "; ".join(told)
