"""What extends a session: where it comes from, what it registered, what it is told, and what it may do.

``ExtensionLoader`` finds extensions in configured files and folders, in installed packages and in a place's own folder, and imports each
under a private name from what was read of it. Those of a place are never imported before an owner trusts their content.
``ExtensionCatalogue`` knows those of a running host and what owners decided about them.
``ExtensionRunner`` activates those of one session, hands events to their handlers and takes back only what a handler has finished and may
change.

Order: handlers run one after another, higher priority first, then in the order of loading and registration.
Failure: a broken extension is reported with its reason and isolated, whatever it does while being imported. A handler that raises, is late,
or leaves something that the event does not allow, is told of as an ``extension_error``; its change is dropped, and a gate says no. After
three failures in a row the extension is out of this session, with all that it had registered.
"""

from features.extensions.at_work import tool_at_work
from features.extensions.catalogue import ExtensionCatalogue, ExtensionLease
from features.extensions.choices import EXTENSION_MIGRATIONS, ExtensionChoices
from features.extensions.extension_runner import ExtensionRunner
from features.extensions.loaded import LoadedExtension, LoadedExtensions
from features.extensions.loading import ExtensionLoader, FoundExtension
from features.extensions.spawning import session_spawn_hook

__all__ = [
    "EXTENSION_MIGRATIONS",
    "ExtensionCatalogue",
    "ExtensionChoices",
    "ExtensionLease",
    "ExtensionLoader",
    "ExtensionRunner",
    "FoundExtension",
    "LoadedExtension",
    "LoadedExtensions",
    "session_spawn_hook",
    "tool_at_work",
]
