"""What all tests share."""

import os
from collections.abc import Generator

import pytest

_NO_SKIPS = "TESTS_MUST_NOT_SKIP"
"""Set where the Debian packages are installed first: a skip for want of one is a failure there."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and os.environ.get(_NO_SKIPS) and "apt-get install" in str(report.longrepr):
        report.outcome = "failed"
    return report
