"""One page, through all its redirects."""

import asyncio
import ssl
from collections.abc import Callable

import httpcore2
import httpx2
import msgspec

from features.contracts.errors import ModelMustAct
from features.tools.web.body import read_body
from features.tools.web.guarded_network import GuardedNetwork
from features.tools.web.public_addresses import Refusal, Resolver

__all__ = ["Page", "PageFetcher"]

_MOST_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_URL = 8000
_HEADERS = [
    (b"User-Agent", b"Mozilla/5.0 (compatible; Pumice; a chat agent that reads a page for a person)"),
    (b"Accept", b"text/html,application/xhtml+xml,text/markdown,text/plain,application/json;q=0.9,*/*;q=0.5"),
    (b"Accept-Language", b"en,*;q=0.5"),
    (b"Accept-Encoding", b"gzip, deflate"),
]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What a server answered in the end. ``content_type`` is the header as it came; ``complete`` False means that ``data`` was cut."""

    url: str
    status: int
    content_type: str
    data: bytes
    complete: bool


class PageFetcher:
    """Neither cookies nor proxies nor the environment have a say. Every redirect is resolved and looked at like the first address.

    Args:
        tls: what certificates are trusted; made when a page is first fetched.
    """

    def __init__(
        self, *, resolver: Resolver, refusal: Refusal, max_bytes: int, timeout_s: float, tls: Callable[[], ssl.SSLContext] | None = None
    ) -> None:
        self._network = GuardedNetwork(resolver, refusal)
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._make_tls = tls if tls is not None else lambda: httpx2.create_ssl_context(trust_env=False)
        self._tls: ssl.SSLContext | None = None

    async def fetch(self, url: str) -> Page:
        """
        Raises:
            ModelMustAct: the address is none, not public, or answers nothing that can be used; the text says which.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._follow(web_address(url))
        except TimeoutError:
            raise ModelMustAct(f"{url} took longer than {self._timeout_s:g} s; try another source") from None
        except httpcore2.TimeoutException:
            raise ModelMustAct(f"{url} does not answer") from None
        except (httpcore2.NetworkError, httpcore2.ProtocolError, ssl.SSLError) as error:
            raise ModelMustAct(f"{url} cannot be fetched: {str(error) or type(error).__name__}") from error

    async def _follow(self, url: httpx2.URL) -> Page:
        if self._tls is None:
            self._tls = await asyncio.to_thread(self._make_tls)
        pool = httpcore2.AsyncConnectionPool(ssl_context=self._tls, network_backend=self._network, max_keepalive_connections=0)
        async with pool:
            for _ in range(_MOST_REDIRECTS + 1):
                answer = await self._ask(pool, url)
                if isinstance(answer, Page):
                    return answer
                url = answer
        raise ModelMustAct(f"more than {_MOST_REDIRECTS} redirects, the last to {url}")

    async def _ask(self, pool: httpcore2.AsyncConnectionPool, url: httpx2.URL) -> Page | httpx2.URL:
        """The answer to one request: a page, or where to ask next."""
        target = httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        async with pool.stream("GET", target, headers=[(b"Host", url.netloc), *_HEADERS]) as response:
            headers = {name.lower(): value.decode("latin-1") for name, value in response.headers}
            location = headers.get(b"location", "")
            if response.status in _REDIRECTS and location:
                return _next(url, location)
            body = await read_body(response.aiter_stream(), coding=headers.get(b"content-encoding", ""), limit=self._max_bytes)
        return Page(
            url=str(url),
            status=response.status,
            content_type=headers.get(b"content-type", ""),
            data=body.data,
            complete=body.complete,
        )


def web_address(text: str) -> httpx2.URL:
    """
    Raises:
        ModelMustAct: ``text`` is no address of the web.
    """
    try:
        url = httpx2.URL(text.strip()).copy_with(fragment=None)
        port = url.port
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise ModelMustAct(f"{text[:200]!r} is no address; write it whole, like https://example.com/page") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise ModelMustAct(f"{text[:200]!r} does not begin with http:// or https://, and web_fetch reads nothing else")
    if url.userinfo:
        raise ModelMustAct("the address has a user name or password in it; web_fetch sends none, leave it out")
    if port is not None and not 0 < port <= 65535:
        raise ModelMustAct(f"there is no port {port}; ports go from 1 to 65535")
    if len(str(url)) > _LONGEST_URL:
        raise ModelMustAct(f"the address is longer than {_LONGEST_URL} characters")
    return url


def _next(url: httpx2.URL, location: str) -> httpx2.URL:
    try:
        joined = str(url.join(location))
    except (httpx2.InvalidURL, ValueError, TypeError):
        raise ModelMustAct(f"{url} redirects to {location[:200]!r}, which is no address") from None
    return web_address(joined)
