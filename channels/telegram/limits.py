"""How much Telegram takes at once, in UTF-16 units."""

__all__ = ["MAX_CAPTION", "MAX_ENTITIES", "MAX_TEXT"]

MAX_TEXT = 4096
MAX_CAPTION = 1024
MAX_ENTITIES = 100
