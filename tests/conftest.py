"""What all tests share."""

import os
from collections.abc import Generator

import pytest

_NO_SKIPS = "TESTS_MUST_NOT_SKIP"
"""Set where everything is installed first: a skip for want of a package is a failure there."""
_WANTS = ("apt-get install", "pip install")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get(_NO_SKIPS) and any(want in str(report.longrepr) for want in _WANTS):
        report.outcome = "failed"
    return report
