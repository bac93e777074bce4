"""What a model can do in a chat: read, write, edit, bash, grep, find, ls, send, web_fetch.

Owns the registry of a session's tools, the validation of their arguments, and the built-in tools with their limits.
Borders: file tools stay in the workspace and the configured roots, symlinks resolved; ``.pumice/`` can be read and not written; processes
are started through the contract alone and for owners alone; pages are fetched from the public internet alone.
Failure: ModelMustAct says what the model did wrong. A result is bounded and never empty; what was cut is in a file that it names.
"""

from features.tools.registry import ToolOptions, ToolRegistry

__all__ = ["ToolOptions", "ToolRegistry"]
