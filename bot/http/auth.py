"""Who may use the API: the token, one-time links, and the cookie that a browser gets for one of them."""

import hashlib
import hmac
import logging
import os
import secrets
from pathlib import Path
from typing import Literal

from features.contracts.clock import Clock
from features.contracts.errors import OperatorMustAct

__all__ = ["COOKIE_SECONDS", "LINK_SECONDS", "Credentials", "load_or_create_token", "private_file"]

COOKIE_SECONDS = 30 * 24 * 3600
LINK_SECONDS = 600
_MAX_LINKS = 16
_MIN_TOKEN = 8

log = logging.getLogger("pumice.http")


def load_or_create_token(data_dir: Path, configured: str | None) -> str:
    """The token of the API: the configured one, else the one in ``data_dir/http.token``, made there on the first start.

    Raises:
        OperatorMustAct: the token is shorter than 8 characters, or the file cannot be read or written.
    """
    if configured:
        return _checked(configured, "http.token")
    path = data_dir / "http.token"
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            private_file(path, secrets.token_urlsafe(32) + "\n", replace=False)
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)
            log.warning("http token was readable by others", extra={"facts": {"file": str(path)}})
        return _checked(path.read_text().strip(), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorMustAct(f"{path} cannot be used: {error}. Make it readable for this user, or delete it to get a new token.") from None


def private_file(path: Path, text: str, *, replace: bool) -> None:
    """Write a file that only this user can read, whole or not at all. Without ``replace`` one that is there stays."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        if replace:
            draft.replace(path)
        elif not path.exists():
            path.hardlink_to(draft)
    except FileExistsError:  # another process was first, and its file is as good
        pass
    finally:
        draft.unlink(missing_ok=True)


def _checked(token: str, where: str) -> str:
    if len(token) < _MIN_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
        raise OperatorMustAct(f"{where} is no usable token. Use at least {_MIN_TOKEN} printable ASCII characters without spaces.")
    return token


class Credentials:
    """Checks what a request brings. Cookies are signed with the token, so they outlive a restart and die with the token."""

    def __init__(self, token: str, clock: Clock) -> None:
        self._token = token.encode()
        self._clock = clock
        self._links: dict[str, float] = {}
        # Cookies do not know ports: two hosts on one machine would overwrite each other's.
        self.cookie_name = f"pumice_{hashlib.sha256(self._token).hexdigest()[:8]}"

    def new_link(self) -> str:
        """A secret that opens the page once, for the next ten minutes."""
        now = self._clock.monotonic()
        self._links = {secret: until for secret, until in self._links.items() if until > now}
        while len(self._links) >= _MAX_LINKS:
            del self._links[next(iter(self._links))]
        secret = secrets.token_urlsafe(32)
        self._links[secret] = now + LINK_SECONDS
        return secret

    def redeem(self, secret: str) -> bool:
        """Take a link's secret; a second time it is worth nothing."""
        until = self._links.pop(secret, None)
        return until is not None and until > self._clock.monotonic()

    def is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode("utf-8", "surrogatepass"), self._token)

    def new_cookie(self) -> str:
        until = int(self._clock.now().timestamp()) + COOKIE_SECONDS
        body = f"{until}.{secrets.token_hex(8)}"
        return f"{body}.{self._sign(body)}"

    def is_cookie(self, value: str) -> bool:
        body, _, signature = value.rpartition(".")
        if not hmac.compare_digest(signature.encode("utf-8", "surrogatepass"), self._sign(body).encode()):
            return False
        return int(body.partition(".")[0]) > self._clock.now().timestamp()

    def judge(self, authorization: str | None, cookie: str | None) -> Literal["token", "cookie"] | None:
        """What a request is let in by."""
        if authorization is not None:  # a wrong token is refused, whatever cookie comes with it
            scheme, _, value = authorization.partition(" ")
            return "token" if scheme.lower() == "bearer" and self.is_token(value.strip()) else None
        return "cookie" if cookie is not None and self.is_cookie(cookie) else None

    def _sign(self, body: str) -> str:
        return hmac.new(self._token, b"cookie:" + body.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()
