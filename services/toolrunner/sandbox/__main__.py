"""Try everything on this machine and print what happened, as JSON."""

import json
import sys

from toolrunner.sandbox.probe import reset_signals, try_all


def main() -> None:
    """Print the outcome of all trials; arguments are a user id, a group, and paths to reach."""
    reset_signals()
    uid, group, *reachable = sys.argv[1:]
    trials = try_all(uid=int(uid), reachable=tuple(reachable), group=group)
    print(
        json.dumps(
            {
                "is_root": trials.is_root,
                "landlock_abi": trials.landlock_abi,
                "kernel": trials.kernel,
                "failures": {str(int(layer)): why for layer, why in trials.failures.items()},
                "has_own_proc": trials.has_own_proc,
                "is_reachable": trials.is_reachable,
            }
        )
    )


if __name__ == "__main__":
    main()
