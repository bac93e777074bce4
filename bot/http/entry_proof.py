"""How a program knows that a port belongs to the host it looks for."""

import hashlib
import hmac

__all__ = ["prove"]


def prove(identity: str, nonce: str) -> str:
    """What only a process that knows ``identity`` can say about a nonce."""
    return hmac.new(identity.encode(), nonce.encode(), hashlib.sha256).hexdigest()
