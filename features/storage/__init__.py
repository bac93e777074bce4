"""The host's one database file.

Owns the SQLite connections, the schema that each slice registers, and backups; what the tables mean belongs to the slices.
Order: works are carried out in the order of the ``write`` calls; whatever waits shares one transaction and one flush to the disk.
Failure: a damaged or newer file is refused at the start and left as it is; a full disk fails writes until there is space again.
"""

from features.storage.database import Database

__all__ = ["Database"]
