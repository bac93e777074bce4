"""Zones that exist, zones that were meant, the machine's own."""

from pathlib import Path

import pytest

from bot.zones import is_zone, machine_zone, near_zones


def test_only_names_of_zones_are_zones() -> None:
    """A folder of the database, a path and nothing are none."""
    assert is_zone("Europe/Vienna")
    assert is_zone("UTC")
    for name in ("Europe", "Mars/Base", "", "../etc/passwd", "/etc/passwd", "Europe/Vienna\0"):
        assert not is_zone(name), name


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("europe/vienna", "Europe/Vienna"),
        ("vienna", "Europe/Vienna"),
        ("New York", "America/New_York"),
        ("Europe/Viena", "Europe/Vienna"),
        ("tokio", "Asia/Tokyo"),
    ],
)
def test_the_zone_that_was_meant_comes_first(typed: str, meant: str) -> None:
    """People type cities, in any case."""
    assert near_zones(typed)[0] == meant


def test_nothing_is_near_to_nonsense() -> None:
    """A wild guess would be worse than none."""
    assert near_zones("qqqqqqqq") == []


def test_the_machine_says_its_zone(tmp_path: Path) -> None:
    """TZ first, then what /etc/localtime points to; UTC where neither says anything."""
    link = tmp_path / "localtime"
    target = tmp_path / "usr/share/zoneinfo/Europe/Rome"
    target.parent.mkdir(parents=True)
    target.touch()
    link.symlink_to(target)
    (tmp_path / "copied").touch()

    assert machine_zone({"TZ": ":Europe/Vienna"}, localtime=link) == "Europe/Vienna"
    assert machine_zone({"TZ": "CET-1CEST"}, localtime=link) == "Europe/Rome"
    assert machine_zone({}, localtime=link) == "Europe/Rome"
    assert machine_zone({}, localtime=tmp_path / "copied") == "UTC"
    assert machine_zone({}, localtime=tmp_path / "missing") == "UTC"
