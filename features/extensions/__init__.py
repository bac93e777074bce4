"""What extends a session, and where it comes from.

``ExtensionLoader`` finds extensions in configured files and folders, in installed packages and in a place's own folder, and imports each
under a private name from what was read of it. Those of a place are never imported before an owner trusts their content
(``ExtensionTrust``).
Failure: a broken extension is reported with its reason and isolated, whatever it does while being imported.
"""

from features.extensions.loaded import LoadedExtension, LoadedExtensions
from features.extensions.loading import ExtensionLoader, FoundExtension
from features.extensions.trust import EXTENSION_MIGRATIONS, ExtensionTrust

__all__ = [
    "EXTENSION_MIGRATIONS",
    "ExtensionLoader",
    "ExtensionTrust",
    "FoundExtension",
    "LoadedExtension",
    "LoadedExtensions",
]
