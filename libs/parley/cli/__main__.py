"""Entry point of `python -m parley.cli`, which `up --detach` starts in the background."""

from parley.cli.main import main

main()
