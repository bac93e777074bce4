"""The folder of each place: where its agent works and its people's files are.

Owns the name of the folder, what a new one holds, and where attachments and full outputs go; every path that it gives lies inside.
Folders are for the host's user alone. What a person or an agent wrote is never overwritten.
"""

from workspaces.workspaces import Workspaces

__all__ = ["Workspaces"]
