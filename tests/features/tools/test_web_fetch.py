"""``web_fetch`` against real servers on loopback addresses, which an explicit policy permits here."""

import asyncio
import gzip
import socket
import ssl
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

import pytest
import trustme

from features.contracts.errors import ModelMustAct
from features.contracts.tools import ToolResult
from features.tools.testing import ToolBench, result_text
from features.tools.web.body import read_body
from features.tools.web.page_fetcher import PageFetcher
from features.tools.web.public_addresses import IpAddress, refusal
from tests.features.tools.conftest import MakeBench

HERE = "127.0.0.1"
INNER = "127.0.0.3"


class Wire:
    """A server that answers with the bytes it was given, and keeps what it was asked."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        self.answers = answers
        self.asked: list[str] = []
        self.port = 0
        self.server_names: list[str | None] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            self.asked.append(request)
            answer = self.answers.get(request.split(" ")[1], b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            for start in range(0, len(answer), 65536):
                writer.write(answer[start : start + 65536])
                await writer.drain()
            if b"hang" not in answer[:200]:
                writer.close()
            else:
                await reader.read()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def wire(answers: dict[str, bytes], *, host: str = HERE, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator[Wire]:
    held = Wire(answers)
    server = await asyncio.start_server(held.serve, host, port, ssl=tls)
    held.port = server.sockets[0].getsockname()[1]
    try:
        yield held
    finally:
        server.close()


def answer(body: bytes, content_type: str = "text/html; charset=utf-8", status: str = "200 OK", *extra: str) -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Type: {content_type}", f"Content-Length: {len(body)}", *extra, "Connection: close"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def redirect(location: str, status: str = "302 Found") -> bytes:
    return f"HTTP/1.1 {status}\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def only_here(address: IpAddress) -> str | None:
    """The policy of these tests: one loopback address counts as the internet."""
    return None if address == ip_address(HERE) else refusal(address)


class Names:
    """A resolver that a test turns: each name has answers, one after another, the last for ever."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(many) for name, many in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.answers:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        many = self.answers[host]
        return many.pop(0) if len(many) > 1 else many[0]


def names() -> Names:
    return Names(page_test=[[HERE]], other_test=[[HERE]], inner_test=[[INNER]])


@pytest.fixture
def bench(make_bench: MakeBench) -> ToolBench:
    return make_bench(web_resolver=names(), web_refusal=only_here)


async def fetched(bench: ToolBench, url: str) -> ToolResult:
    return await bench.run("web_fetch", url=url)


async def test_a_page_becomes_text_with_whole_links_and_without_menus(bench: ToolBench) -> None:
    """What a person would read of it, and nothing that steers a browser."""
    html = (
        "<html><head><title>A &amp; B</title><script>evil()</script></head><body><nav><a href='/n'>menu</a></nav><h1>Head</h1>"
        "<p>Text with <a href='/deep?x=1'>a link</a>.</p><table><tr><th>k</th><th>v</th></tr><tr><td>1</td><td>2</td></tr></table>"
        "<pre><code>if a &lt; b:\n    go()</code></pre></body></html>"
    )
    async with wire({"/page": answer(html.encode())}) as server:
        text = result_text(await fetched(bench, f"http://page.test:{server.port}/page#part"))

    assert f"http://page.test:{server.port}/page" in text
    assert "Title: A & B" in text
    assert f"[a link](http://page.test:{server.port}/deep?x=1)" in text
    assert "# Head" in text
    assert "if a < b:\n    go()" in text
    assert "| 1 | 2 |" in text
    assert "evil" not in text
    assert "menu" not in text
    assert "Written by strangers" in text


async def test_the_server_hears_the_name_and_no_more_than_it_needs(bench: ToolBench) -> None:
    """The connection goes to a number and the request to a name; nothing of this machine goes along."""
    async with wire({"/a%20b?q=1": answer(b"ok", "text/plain")}) as server:
        await fetched(bench, f"http://page.test:{server.port}/a b?q=1")

    [request] = server.asked
    assert f"\r\nHost: page.test:{server.port}\r\n" in request
    assert "Cookie" not in request
    assert "Authorization" not in request


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"b":[1,2]}', '{\n "b": [\n  1,\n  2\n ]\n}'),
        ("{broken", "{broken"),
    ],
)
async def test_json_is_laid_out_on_lines(bench: ToolBench, text: str, expected: str) -> None:
    """A result is cut at lines."""
    async with wire({"/": answer(text.encode(), "application/json")}) as server:
        assert expected in result_text(await fetched(bench, f"http://page.test:{server.port}/"))


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        ("größe".encode("latin-1"), "text/plain; charset=ISO-8859-1", "größe"),
        ("“größe”".encode("cp1252"), "text/html; charset=latin1", "“größe”"),
        ("größe".encode("utf-16"), "text/plain", "größe"),
        ("größe".encode("utf-16-le"), "text/plain; charset=utf-16-le", "größe"),
        ("<meta charset='koi8-r'><p>привет".encode("koi8-r"), "text/html", "привет"),
        ("<p>größe".encode("cp1252"), "text/html", "größe"),
        ("<p>größe".encode(), "text/html; charset=rot13", "größe"),
        ("<p>größe".encode(), "text/html; charset=no-such", "größe"),
        ("<!doctype html><p>größe".encode(), "", "größe"),
        ("größe".encode(), "application/octet-stream", "größe"),
        (b"\xef\xbb\xbfplain", "text/plain", "plain"),
    ],
)
async def test_a_page_is_read_in_the_charset_that_it_is_written_in(bench: ToolBench, body: bytes, content_type: str, expected: str) -> None:
    """Old pages are everywhere."""
    async with wire({"/": answer(body, content_type)}) as server:
        text = result_text(await fetched(bench, f"http://page.test:{server.port}/"))

    assert expected in text
    assert "\ufeff" not in text


@pytest.mark.parametrize(
    ("coding", "packed"),
    [
        ("gzip", gzip.compress(b"<p>packed", mtime=0)),
        ("deflate", zlib.compress(b"<p>packed")),
        ("deflate", zlib.compress(b"<p>packed")[2:-4]),
        ("identity", b"<p>packed"),
    ],
)
async def test_packed_answers_are_unpacked(bench: ToolBench, coding: str, packed: bytes) -> None:
    """Also by servers that call a bare stream deflate."""
    async with wire({"/": answer(packed, "text/html", "200 OK", f"Content-Encoding: {coding}")}) as server:
        assert "packed" in result_text(await fetched(bench, f"http://page.test:{server.port}/"))


@pytest.mark.parametrize(("coding", "body"), [("br", b"x"), ("gzip", b"\x1f\x8bno gzip at all"), ("gzip, gzip", b"x")])
async def test_an_answer_that_cannot_be_unpacked_says_so(bench: ToolBench, coding: str, body: bytes) -> None:
    """Nothing is guessed."""
    async with wire({"/": answer(body, "text/html", "200 OK", f"Content-Encoding: {coding}")}) as server:
        with pytest.raises(ModelMustAct, match=r"packed as|damaged"):
            await fetched(bench, f"http://page.test:{server.port}/")


async def test_a_bomb_is_never_unpacked_beyond_the_limit(make_bench: MakeBench) -> None:
    """A megabyte of it would be a gigabyte."""
    bench = make_bench(web_resolver=names(), web_refusal=only_here, web_max_bytes=100_000)
    bomb = gzip.compress(b"a" * 50_000_000)
    async with wire({"/": answer(bomb, "text/plain", "200 OK", "Content-Encoding: gzip")}) as server:
        text = result_text(await fetched(bench, f"http://page.test:{server.port}/"))

    assert "its end is missing" in text
    assert len(text) < 60_000


async def test_a_bomb_takes_no_room_while_it_is_unpacked() -> None:
    """Not only what is kept is bounded."""

    bomb = gzip.compress(b"a" * 50_000_000)

    async def pieces() -> AsyncIterator[bytes]:
        yield bomb

    tracemalloc.start()
    try:
        body = await read_body(pieces(), coding="gzip", limit=100_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert (len(body.data), body.complete) == (100_000, False)
    assert peak < 1_000_000


async def test_a_long_text_is_cut_and_kept_in_a_file(make_bench: MakeBench, workspace: Path) -> None:
    """As with every tool."""
    bench = make_bench(web_resolver=names(), web_refusal=only_here, max_result_lines=10)
    body = "\n".join(f"line {number}" for number in range(1, 101))
    async with wire({"/": answer(body.encode(), "text/plain")}) as server:
        text = result_text(await fetched(bench, f"http://page.test:{server.port}/"))

    assert "line 10\n" in text
    assert "line 11" not in text
    assert "Showing lines 1-10 of 100." in text
    path = Path(text.rpartition("Full text: ")[2].rstrip("]"))
    assert path.read_text() == body
    assert path.is_relative_to(workspace)
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"%PDF-1.7", "application/pdf"), (b"\x89PNG\r\n\x1a\n\0", "image/png"), (b"a\0b", "text/plain"), (b"\0\1\2", "")],
)
async def test_what_is_no_text_is_refused_with_its_type(bench: ToolBench, body: bytes, content_type: str) -> None:
    """The model should not have to guess what it got."""
    async with wire({"/": answer(body, content_type)}) as server:
        with pytest.raises(ModelMustAct, match="reads text only"):
            await fetched(bench, f"http://page.test:{server.port}/")


async def test_an_error_of_the_server_is_shown_as_one(bench: ToolBench) -> None:
    """With what the server says about it."""
    async with wire({"/": answer(b"<p>Come back later", status="503 Service Unavailable")}) as server:
        result = await fetched(bench, f"http://page.test:{server.port}/")

    assert result.is_error
    assert "503" in result_text(result)
    assert "Come back later" in result_text(result)


MONSTERS = {
    "deep": b"<div>" * 200_000 + b"x",
    "tables": b"<table><tr><td>" * 50_000,
    "attributes": b"<a href='" * 20_000,
    "comment": b"<!--" + b"-" * 500_000,
    "entities": b"&#x" * 100_000,
}


@pytest.mark.parametrize("body", MONSTERS.values(), ids=MONSTERS)
async def test_monstrous_html_hurts_nobody(bench: ToolBench, body: bytes) -> None:
    """A page may be made to break its reader."""
    async with wire({"/": answer(body)}) as server:
        assert "Written by strangers" in result_text(await fetched(bench, f"http://page.test:{server.port}/"))


# Where it may not go


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://127.0.0.1:6379/_SET",
        "javascript:alert(1)",
        "example.com",
        "http://",
        "http:///path",
        "http://user:pw@page.test/",
        "http://page.test:99999/",
        "http://page.test:0/",
        "http://[::1",
        "",
    ],
)
async def test_what_is_no_address_of_the_web_is_refused(bench: ToolBench, url: str) -> None:
    """Before anybody is asked where it is."""
    with pytest.raises(ModelMustAct):
        await fetched(bench, url)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.255.1.1", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255",
        "192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.7", "203.0.113.9", "224.0.0.1", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:0:192.168.0.1", "64:ff9b::169.254.169.254",
        "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001::1", "2001:db8::1", "3fff::1", "fc00::1", "fd00:ec2::254", "fe80::1",
        "fec0::1", "ff02::1", "2606:4700::5efe:10.0.0.1", "2606:4700::200:5efe:8.8.8.8", "100::1", "5f00::1",
    ],
)  # fmt: skip
def test_no_address_but_a_public_one_is_let_through(address: str) -> None:
    """The registries of special addresses, and every way to write an old one as a new one."""
    assert refusal(ip_address(address)) is not None


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "192.0.1.1",
        "223.255.255.255",
        "2606:4700::1111",
        "2a00:1450:4001::e",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2002:808:808::1",
    ],
)
def test_public_addresses_are_let_through(address: str) -> None:
    """A guard that refuses everything guards nothing that is used."""
    assert refusal(ip_address(address)) is None


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::1]", "[::ffff:7f00:1]", "localhost", "0", "[fe80::1%25lo]"]
)
async def test_this_machine_is_refused_however_it_is_written(make_bench: MakeBench, host: str) -> None:
    """With the machine's own resolver and the policy as it ships."""
    async with wire({"/": answer(b"private")}) as server:
        with pytest.raises(ModelMustAct, match=r"public internet only|no host|is no address"):
            await fetched(make_bench(), f"http://{host}:{server.port}/")

    assert server.asked == []


async def test_a_redirect_inside_is_refused_like_a_first_address(bench: ToolBench) -> None:
    """Every hop is looked at; the inner server hears nothing."""
    async with wire({"/secret": answer(b"secret")}, host=INNER) as inner:
        locations = {
            "/by-number": redirect(f"http://{INNER}:{inner.port}/secret"),
            "/by-name": redirect(f"http://inner.test:{inner.port}/secret", "307 Temporary Redirect"),
            "/by-scheme": redirect("file:///etc/passwd"),
            "/twice": redirect("/by-name"),
            "/meta": redirect("http://169.254.169.254/latest/meta-data/"),
        }
        async with wire(locations) as server:
            bench.registry.get("web_fetch")
            for path in locations:
                with pytest.raises(ModelMustAct, match=r"public internet only|does not begin with|no host"):
                    await fetched(bench, f"http://page.test:{server.port}{path}")

    assert inner.asked == []


async def test_redirects_are_followed_and_end(bench: ToolBench) -> None:
    """Relative ones too, and a circle is no way to keep a tool busy."""
    answers = {"/a": redirect("b?x=1", "301 Moved"), "/b?x=1": answer(b"<p>there"), "/loop": redirect("/loop")}
    async with wire(answers) as server:
        text = result_text(await fetched(bench, f"http://page.test:{server.port}/a"))
        with pytest.raises(ModelMustAct, match="more than 10 redirects"):
            await fetched(bench, f"http://page.test:{server.port}/loop")

    assert "there" in text
    assert f"http://page.test:{server.port}/b?x=1," in text


async def test_an_answer_of_the_resolver_that_changes_changes_nothing(make_bench: MakeBench) -> None:
    """The address that was looked at is the one that is connected to: the name is not asked for twice."""
    async with wire({"/": answer(b"<p>public")}) as server, wire({"/": answer(b"secret")}, host=INNER, port=server.port) as inner:
        turning = Names(page_test=[[HERE], [INNER]])
        bench = make_bench(web_resolver=turning, web_refusal=only_here)

        text = result_text(await fetched(bench, f"http://page.test:{server.port}/"))
        assert "public" in text
        assert turning.asked == ["page.test"]

        with pytest.raises(ModelMustAct, match="public internet only"):
            await fetched(bench, f"http://page.test:{server.port}/")
    assert inner.asked == []


async def test_the_resolver_may_change_its_mind_between_two_hops(make_bench: MakeBench) -> None:
    """A redirect to the same name is looked up and looked at anew."""
    async with wire({"/": redirect("/next"), "/next": answer(b"x")}) as server:
        bench = make_bench(web_resolver=Names(page_test=[[HERE], [INNER]]), web_refusal=only_here)
        with pytest.raises(ModelMustAct, match="public internet only"):
            await fetched(bench, f"http://page.test:{server.port}/")


async def test_one_private_address_among_public_ones_refuses_the_name(make_bench: MakeBench) -> None:
    """Nobody would say which of them a connection takes."""
    bench = make_bench(web_resolver=Names(page_test=[[HERE, INNER]]), web_refusal=only_here)
    with pytest.raises(ModelMustAct, match="public internet only"):
        await fetched(bench, "http://page.test/")


async def test_proxies_of_the_environment_have_no_say(bench: ToolBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy would resolve the name again, where nobody looks."""
    async with wire({"/": answer(b"<p>direct")}) as server, wire({}) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        text = result_text(await fetched(bench, f"http://page.test:{server.port}/"))

    assert "direct" in text
    assert proxy.asked == []


# Time and trouble


async def test_a_page_that_takes_too_long_is_given_up(make_bench: MakeBench) -> None:
    """Also one that sends its first half at once."""
    bench = make_bench(web_resolver=names(), web_refusal=only_here, web_timeout_s=0.3)
    slow = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\nX: hang\r\n\r\nhalf"
    async with wire({"/": slow}) as server:
        with pytest.raises(ModelMustAct, match="longer than"):
            await fetched(bench, f"http://page.test:{server.port}/")


async def test_a_resolver_that_hangs_is_given_up(make_bench: MakeBench) -> None:
    """The time counts from the beginning."""

    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(ModelMustAct, match="longer than"):
        await fetched(make_bench(web_resolver=never, web_timeout_s=0.1), "http://page.test/")


@pytest.mark.parametrize(
    "raw", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nshort"]
)
async def test_a_broken_answer_is_told_in_one_line(bench: ToolBench, raw: bytes) -> None:
    """No traceback reaches a model."""
    async with wire({"/": raw}) as server:
        with pytest.raises(ModelMustAct, match="cannot be fetched"):
            await fetched(bench, f"http://page.test:{server.port}/")


async def test_a_host_that_is_not_there_or_does_not_listen_is_told(bench: ToolBench) -> None:
    """Two different things for the model to do."""
    with pytest.raises(ModelMustAct, match=r"no host 'nowhere\.test'"):
        await fetched(bench, "http://nowhere.test/")
    with socket.socket() as unused:
        unused.bind((HERE, 0))
        with pytest.raises(ModelMustAct, match="cannot be fetched"):
            await fetched(bench, f"http://page.test:{unused.getsockname()[1]}/")


async def test_https_asks_for_the_name_and_checks_it(tmp_path: Path) -> None:
    """Pinned to a number, TLS still means the host that was asked for."""
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("page.test").configure_cert(served)
    asked: list[str | None] = []
    served.sni_callback = lambda sock, name, context: asked.append(name)

    def trusted() -> ssl.SSLContext:
        context = ssl.create_default_context()
        authority.configure_trust(context)
        return context

    fetcher = PageFetcher(resolver=names(), refusal=only_here, max_bytes=1000, timeout_s=5, tls=trusted)
    async with wire({"/": answer(b"<p>private talk")}, tls=served) as server:
        page = await fetcher.fetch(f"https://page.test:{server.port}/")
        assert b"private talk" in page.data
        assert asked == ["page.test"]
        with pytest.raises(ModelMustAct, match="cannot be fetched"):
            await fetcher.fetch(f"https://other.test:{server.port}/")
