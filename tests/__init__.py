"""The tests; they mirror the rooms."""
