"""Where in Slack an address is."""

from features.contracts.chat import Address

__all__ = ["Target"]


class Target:
    """A conversation, and the thread in it; a thread that turns out to be gone is taken away.

    Args:
        reply_to: the message that is answered. In a direct message, which is one session, it may name a thread.
    """

    def __init__(self, address: Address, reply_to: str | None = None) -> None:
        self.team, _, self.channel = address.chat.partition("/")
        self.direct = self.channel.startswith(("D", "U", "W"))  # a person's id leads to the direct message with them
        self.thread = address.thread if not self.direct else reply_to or address.thread
