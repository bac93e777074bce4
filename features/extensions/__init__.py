"""What extends a session, and where it comes from.

``ExtensionLoader`` finds extensions in configured files and folders, in installed packages and in a place's own folder, and imports each
under a private name from what was read of it. Those of a place are never imported before an owner trusts their content.
``ExtensionCatalogue`` knows those of a running host and what owners decided about them.
Failure: a broken extension is reported with its reason and isolated, whatever it does while being imported.
"""

from features.extensions.catalogue import ExtensionCatalogue, ExtensionLease
from features.extensions.choices import EXTENSION_MIGRATIONS, ExtensionChoices
from features.extensions.loaded import LoadedExtension, LoadedExtensions
from features.extensions.loading import ExtensionLoader, FoundExtension

__all__ = [
    "EXTENSION_MIGRATIONS",
    "ExtensionCatalogue",
    "ExtensionChoices",
    "ExtensionLease",
    "ExtensionLoader",
    "FoundExtension",
    "LoadedExtension",
    "LoadedExtensions",
]
