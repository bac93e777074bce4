"""What extensions, channels, stores and slices agree on.

Small and stable: frozen records, protocols and errors; no I/O. Import from the concept's own module
(``from features.contracts.messages import UserMessage``).
"""
