"""Nobody gets in who may not."""

import asyncio
from urllib.parse import urlsplit

import httpx2
import pytest

from bot.http.auth import LINK_SECONDS, Credentials
from bot.http.guard import HostNames
from bot.http.server import HttpServer
from bot.http.testing import MemoryHost
from features.contracts.testing import FakeClock

PRIVATE = [
    ("GET", "/api/chats"),
    ("GET", "/api/chats/web:main/messages"),
    ("POST", "/api/chats/web:main/messages"),
    ("GET", "/api/chats/web:main/events"),
    ("POST", "/api/chats/web:main/send"),
    ("GET", "/api/sessions"),
    ("GET", "/api/access"),
    ("POST", "/api/access/approve"),
    ("POST", "/api/login-link"),
    ("GET", "/api/openapi.json"),
    ("GET", "/metrics"),
    ("GET", "/no/such/thing"),
]


@pytest.mark.parametrize(("method", "path"), PRIVATE)
async def test_without_a_token_nothing_private_is_answered(stranger: httpx2.AsyncClient, method: str, path: str) -> None:
    """Being on the same machine proves nothing; not even what exists is told."""
    response = await stranger.request(method, path)

    assert response.status_code == 401
    assert "http.token" in response.json()["error"]
    assert response.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("value", ["Bearer wrong", "Bearer", "Basic abc", "", "Bearer é"])
async def test_a_wrong_token_is_refused(stranger: httpx2.AsyncClient, value: str) -> None:
    """Also one that no comparison of text expects."""
    response = await stranger.get("/api/chats", headers={b"authorization": value.encode()})

    assert response.status_code == 401


async def test_a_wrong_token_is_refused_whatever_cookie_comes_with_it(server: HttpServer, stranger: httpx2.AsyncClient) -> None:
    """A program that names a token is judged by the token."""
    await log_in(server, stranger)

    assert (await stranger.get("/api/chats")).status_code == 200
    assert (await stranger.get("/api/chats", headers={"authorization": "Bearer wrong"})).status_code == 401


async def log_in(server: HttpServer, client: httpx2.AsyncClient) -> httpx2.Response:
    secret = urlsplit(server.login_link()).fragment.removeprefix("login=")
    return await client.post("/api/login", json={"secret": secret}, headers={"origin": server.url})


async def test_a_link_lets_a_browser_in_once(server: HttpServer, stranger: httpx2.AsyncClient) -> None:
    """Whoever finds the link later, in a history or a log, finds it used."""
    secret = urlsplit(server.login_link()).fragment.removeprefix("login=")
    first = await stranger.post("/api/login", json={"secret": secret})
    second = await stranger.post("/api/login", json={"secret": secret})

    assert first.status_code == 204
    assert "HttpOnly" in first.headers["set-cookie"]
    assert "samesite=strict" in first.headers["set-cookie"].lower()
    assert second.status_code == 401
    assert "set-cookie" not in second.headers
    assert (await stranger.get("/api/chats")).status_code == 200


async def test_the_token_opens_the_page_too_and_signing_out_closes_it(stranger: httpx2.AsyncClient, server: HttpServer, token: str) -> None:
    """For whoever comes after the link's ten minutes."""
    assert (await stranger.post("/api/login", json={"token": "not it"})).status_code == 401
    assert (await stranger.post("/api/login", json={"token": token})).status_code == 204
    assert (await stranger.get("/api/chats")).status_code == 200

    assert (await stranger.post("/api/logout", headers={"origin": server.url})).status_code == 204
    assert (await stranger.get("/api/chats")).status_code == 401


async def test_the_owner_gets_a_fresh_link(owner: httpx2.AsyncClient, stranger: httpx2.AsyncClient, server: HttpServer) -> None:
    """For a second browser while the host runs."""
    link = (await owner.post("/api/login-link")).json()
    assert link["url"].startswith(f"{server.url}/#login=")

    secret = urlsplit(link["url"]).fragment.removeprefix("login=")
    assert (await stranger.post("/api/login", json={"secret": secret})).status_code == 204


async def test_a_link_ends_after_ten_minutes() -> None:
    """It may have been printed into a log."""
    clock = FakeClock()
    credentials = Credentials("a-token-of-this-test", clock)
    early, late = credentials.new_link(), credentials.new_link()
    await clock.advance(LINK_SECONDS - 1)
    assert credentials.redeem(early)
    await clock.advance(2)

    assert not credentials.redeem(late)


async def test_a_cookie_ends_with_its_time_and_with_its_token() -> None:
    """Changing the token signs every browser out."""
    clock = FakeClock()
    credentials = Credentials("a-token-of-this-test", clock)
    cookie = credentials.new_cookie()
    until, rest = cookie.split(".", 1)

    assert credentials.is_cookie(cookie)
    assert Credentials("a-token-of-this-test", clock).is_cookie(cookie), "a restart keeps browsers signed in"
    assert not Credentials("another-token-of-it", clock).is_cookie(cookie)
    assert not credentials.is_cookie(f"{int(until) + 9}.{rest}")
    assert not credentials.is_cookie("")
    assert not credentials.is_cookie("x.y.é")
    await clock.advance(31 * 24 * 3600)
    assert not credentials.is_cookie(cookie)


async def test_links_that_nobody_uses_do_not_pile_up() -> None:
    """The oldest gives way."""
    credentials = Credentials("a-token-of-this-test", FakeClock())
    links = [credentials.new_link() for _ in range(40)]

    assert not credentials.redeem(links[0])
    assert credentials.redeem(links[-1])


@pytest.mark.parametrize(
    "name", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "localhost@evil.example", "", "[::1", "127.0.0.1:x"]
)
@pytest.mark.parametrize("path", ["/", "/api/chats", "/healthz"])
async def test_a_foreign_host_name_is_refused(owner: httpx2.AsyncClient, name: str, path: str) -> None:
    """A page elsewhere whose name was made to lead here comes with its own name."""
    response = await owner.get(path, headers={"host": name})

    assert response.status_code in (400, 403)  # what is no Host header at all, the server itself refuses
    assert "chats" not in response.text


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "LOCALHOST"])
async def test_the_names_of_this_machine_are_taken(owner: httpx2.AsyncClient, server: HttpServer, name: str) -> None:
    """With any port, because a tunnel may have another."""
    port = urlsplit(server.url).port

    assert (await owner.get("/api/chats", headers={"host": f"{name}:{port}"})).status_code == 200
    assert (await owner.get("/api/chats", headers={"host": name})).status_code == 200


def test_the_public_name_is_taken_and_nothing_like_it() -> None:
    """A proxy hands the public name on."""
    names = HostNames("0.0.0.0", "https://chat.example.org")

    assert names.is_ours("chat.example.org")
    assert not names.is_ours("0.0.0.0:8765")
    assert not names.is_ours("x.chat.example.org")
    assert names.is_own_origin("https://chat.example.org", "127.0.0.1:8765")
    assert not names.is_own_origin("https://evil.example", "chat.example.org")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:3000", "file://", "http://127.0.0.1:1"])
async def test_a_foreign_origin_is_refused(owner: httpx2.AsyncClient, server: HttpServer, origin: str) -> None:
    """Another program's page on this machine counts as foreign; a cookie does not tell ports apart."""
    posted = await owner.post("/api/chats/web:main/messages", json={"text": "hi"}, headers={"origin": origin})
    streamed = await owner.get("/api/chats/web:main/events", headers={"origin": origin})
    signed_in = await owner.post("/api/login", json={"token": "x"}, headers={"origin": origin})

    assert (posted.status_code, streamed.status_code, signed_in.status_code) == (403, 403, 403)
    assert not [header for header in posted.headers if header.startswith("access-control")]


async def test_a_request_with_a_cookie_must_name_its_own_origin(server: HttpServer, stranger: httpx2.AsyncClient, host: MemoryHost) -> None:
    """A form of another page would not."""
    await log_in(server, stranger)
    without = await stranger.post("/api/chats/web:main/messages", json={"text": "hi"})
    with_own = await stranger.post("/api/chats/web:main/messages", json={"text": "hi"}, headers={"origin": server.url})

    assert (without.status_code, with_own.status_code) == (403, 202)
    assert len(host.rows) == 1


@pytest.mark.parametrize(
    "path", ["/static/../page.py", "/static/..%2fpage.py", "/static/%2e%2e/channel.py", "/static//etc/passwd", "/static/"]
)
async def test_no_path_leads_out_of_the_page(server: HttpServer, path: str) -> None:
    """Sent as it stands, because a client would tidy it up."""
    parts = urlsplit(server.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()

    assert answer.split(b" ")[1] in (b"401", b"404")
    assert b"Path" not in answer
    assert b"root:" not in answer


async def test_every_answer_carries_the_security_headers(stranger: httpx2.AsyncClient, owner: httpx2.AsyncClient) -> None:
    """Errors too; and nothing inline may run."""
    for response in (await stranger.get("/"), await stranger.get("/api/chats"), await owner.get("/api/chats"), await owner.get("/nothing")):
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["referrer-policy"] == "no-referrer"


async def test_a_defect_is_logged_under_an_id_that_the_answer_names(
    owner: httpx2.AsyncClient, host: MemoryHost, caplog: pytest.LogCaptureFixture
) -> None:
    """The person can name it; the text of the exception stays inside."""

    def fail(*_: object) -> None:
        raise ValueError("what nobody outside should read")

    host.reply = fail
    response = await owner.post("/api/chats/web:main/messages", json={"text": "hi"})

    assert response.status_code == 500
    assert "what nobody" not in response.text
    facts = caplog.records[-1].__dict__["facts"]
    assert facts["id"] in response.json()["error"]
    assert response.headers["x-content-type-options"] == "nosniff"
