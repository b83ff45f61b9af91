"""Run the file worker."""

import os

from toolrunner.fileworker.program import main

if __name__ == "__main__":
    main(os.environ)  # noqa: TID251 (it is read here and nowhere else)
