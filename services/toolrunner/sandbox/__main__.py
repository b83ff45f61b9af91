"""Probe all mechanisms on this machine and print the results, or a node report, as JSON."""

import json
import sys
from dataclasses import asdict

from toolrunner.sandbox.plan import judge
from toolrunner.sandbox.probe import reset_signals, try_all
from toolrunner.sandbox.values import Level, Report, Trials

REPORT = "--report"


def main() -> None:
    """Print the results of all probes; arguments are a user id and paths to reach.

    With `--report` before them, print instead the report of a node.
    """
    reset_signals()
    arguments = [word for word in sys.argv[1:] if word != REPORT]
    uid, *reachable = arguments
    trials = try_all(uid=int(uid), reachable=tuple(reachable))
    is_report = REPORT in sys.argv
    print(json.dumps(_report(judge(trials, minimum=Level.NONE)) if is_report else _trials(trials)))


def _trials(trials: Trials) -> dict[str, object]:
    failures = {str(int(layer)): why for layer, why in trials.failures.items()}
    return {**asdict(trials), "failures": failures}


def _report(report: Report) -> dict[str, object]:
    return {
        "level": report.level.word,
        "kernel": report.kernel,
        "landlock_abi": report.landlock_abi,
        "layers": [layer.word for layer in report.layers],
        "missing": [{**asdict(each), "layer": each.layer.word} for each in report.missing],
    }


if __name__ == "__main__":
    main()
