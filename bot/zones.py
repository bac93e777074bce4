"""IANA time zones: which exist, which the machine is in, which somebody may have meant."""

from collections.abc import Mapping
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

__all__ = ["is_zone", "machine_zone", "near_zones"]

_LOCALTIME = Path("/etc/localtime")


def is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name of a folder, like "Europe"
        return False
    return True


def near_zones(name: str, *, limit: int = 3) -> list[str]:
    """Zones that ``name`` may stand for: another spelling, a city, a typo; the best first."""
    from difflib import get_close_matches
    from zoneinfo import available_timezones

    wanted = name.strip().casefold().replace(" ", "_")
    zones = sorted(available_timezones())
    spelled = [zone for zone in zones if zone.casefold() == wanted]
    city = [zone for zone in zones if "/" in zone and zone.rpartition("/")[2].casefold() == wanted]
    if spelled or city:
        return (spelled or city)[:limit]
    by_text = {zone.casefold(): zone for zone in zones} | {zone.rpartition("/")[2].casefold(): zone for zone in zones if "/" in zone}
    near = [by_text[text] for text in get_close_matches(wanted, by_text, n=limit, cutoff=0.7)]
    return list(dict.fromkeys(near))


def machine_zone(environ: Mapping[str, str], *, localtime: Path = _LOCALTIME) -> str:
    """The zone this machine is set to; UTC where it does not say."""
    named = environ.get("TZ", "").lstrip(":")
    if named and is_zone(named):
        return named
    try:
        target = str(localtime.resolve(strict=True))
    except (OSError, RuntimeError):
        return "UTC"
    name = target.partition("/zoneinfo/")[2].removeprefix("posix/").removeprefix("right/")
    if name in ("Etc/UTC", "Etc/UCT", "Etc/Universal", "Etc/Zulu"):
        return "UTC"
    return name if name and is_zone(name) else "UTC"
