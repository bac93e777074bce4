"""``features/README.md`` is the map; it must show the country."""

import importlib
from pathlib import Path

FEATURES = Path(__file__).parents[2] / "features"


def rows() -> dict[str, str]:
    """Slice and entry type of each line of the table."""
    lines = [line.split("|") for line in (FEATURES / "README.md").read_text().splitlines() if line.startswith("| `")]
    return {cells[1].strip(" `"): cells[2].strip(" `") for cells in lines}


def folders() -> set[str]:
    return {folder.name for folder in FEATURES.iterdir() if (folder / "__init__.py").is_file()}


def test_every_slice_is_on_the_map_and_nothing_else() -> None:
    """A newcomer starts there."""
    assert set(rows()) == folders()


def test_every_slice_exports_the_entry_type_that_the_map_names() -> None:
    """Others reach a slice through it alone."""
    for name in sorted(folders()):
        slice_ = importlib.import_module(f"features.{name}")
        if entry := rows()[name]:
            assert entry in slice_.__all__, name
            assert hasattr(slice_, entry), name
        assert (slice_.__doc__ or "").strip(), f"features/{name}/__init__.py has no page"
