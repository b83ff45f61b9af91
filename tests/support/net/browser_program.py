"""Which browser of this machine the tests use."""

import shutil

import pytest

from parley.cli.host.checks import BROWSERS

CHROMIUMS = tuple(name for name in BROWSERS if name.startswith(("chromium", "google-chrome")))


def installed_browser() -> str | None:
    """Return the browser of this machine, if it has one."""
    return next((path for path in map(shutil.which, CHROMIUMS) if path), None)


def browser_program() -> str:
    """Return a browser, or skip the test that needs one."""
    found = installed_browser()
    if found is None:
        pytest.skip("no browser is installed: run scripts/browser as root, or install chromium")
    return found
