"""The host: it composes everything. Nothing imports it."""
