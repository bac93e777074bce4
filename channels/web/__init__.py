"""The web chat, and every other chat that is spoken over the host's own HTTP.

Owns the page's files and what people upload; the HTTP itself is the host's.
Failure: none of its own; a message counts as delivered once it is in the chat's log, where a page that was away finds it.
"""

from channels.web.channel import WebChannel
from channels.web.page import page_file
from channels.web.uploads import UploadStore

__all__ = ["UploadStore", "WebChannel", "page_file"]
