"""What the chats' API takes and gives."""

import base64
import json
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from bot.http.chat_log import ChatLogFile
from bot.http.server import HttpServer
from bot.http.testing import MemoryHost
from features.contracts.chat import Address, Button

MAIN = Address("web", "main")
TOPIC = Address("telegram", "-1001", "7")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


async def test_a_posted_message_is_taken_and_listed_with_its_answer(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """The shape is a promise to other programs."""
    posted = await owner.post("/api/chats/web:main/messages", json={"text": "hello"})
    identifier = posted.json()["id"]
    host.deliver(MAIN, "Hi!", answers=(identifier,), buttons=((Button(label="More", command="/more"),),))
    listed = (await owner.get("/api/chats/web:main/messages")).json()

    assert posted.status_code == 202
    assert [(row["role"], row["text"], row["answers"]) for row in listed] == [("user", "hello", []), ("assistant", "Hi!", [identifier])]
    assert listed[0]["id"] == identifier
    assert listed[0]["at"].endswith("Z")
    assert listed[1]["buttons"] == [[{"label": "More", "command": "/more"}]]


@pytest.mark.parametrize("written", ["telegram:-1001/7", "telegram:-1001%2F7", "telegram%3A-1001%2F7"])
async def test_an_address_is_understood_with_its_slashes_plain_or_encoded(
    owner: httpx2.AsyncClient, host: MemoryHost, written: str
) -> None:
    """Programs differ in what they encode."""
    response = await owner.post(f"/api/chats/{written}/messages", json={"text": "hi"})

    assert response.status_code == 202
    assert list(host.rows) == [TOPIC]


@pytest.mark.parametrize(
    ("address", "status"),
    [("nonsense", 400), ("web:", 400), (":x", 400), ("slack:T0/C0", 404), ("web:" + "x" * 300, 400), ("web:a%00b", 400)],
)
async def test_an_address_that_cannot_be_is_refused_with_a_reason(owner: httpx2.AsyncClient, address: str, status: int) -> None:
    """Before anything is stored."""
    for response in (
        await owner.get(f"/api/chats/{address}/messages"),
        await owner.post(f"/api/chats/{address}/messages", json={"text": "hi"}),
        await owner.get(f"/api/chats/{address}/events"),
    ):
        assert response.status_code == status
        assert response.json()["error"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"text": 5}',
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b"{}",
        b'{"text": "  "}',
        b'{"text": "x", "images": ["http://x/y.png"]}',
        b'{"text": "x", "images": ["data:image/png;base64,%%%"]}',
        b'{"text": "x", "files": [{"name": "a", "data": "!"}]}',
        b'{"files": [{"name": "", "data": ""}]}',
        b"[" * 100_000,
    ],
)
async def test_a_broken_body_is_refused_and_nothing_is_stored(owner: httpx2.AsyncClient, host: MemoryHost, body: bytes) -> None:
    """Each with a text that says what is wrong."""
    response = await owner.post("/api/chats/web:main/messages", content=body)

    assert response.status_code == 400
    assert len(response.json()["error"]) > 20
    assert not host.rows


async def test_a_body_that_is_too_long_is_refused_before_it_is_read(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """By its declared length, and where none is declared, while it comes."""
    declared = await owner.post("/api/chats/web:main/messages", headers={"content-length": "30000001"}, content=b"x" * 30_000_001)

    async def chunks() -> AsyncGenerator[bytes, None]:
        for _ in range(31):
            yield b" " * 1_000_000

    streamed = await owner.post("/api/chats/web:main/messages", content=chunks())

    assert (declared.status_code, streamed.status_code) == (413, 413)
    assert "30 MB" in streamed.json()["error"]
    assert not host.rows


async def test_images_and_files_come_with_a_message(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """In both forms; what an image is, its bytes say and not its label."""
    data = base64.b64encode(PNG).decode()
    response = await owner.post(
        "/api/chats/web:main/messages",
        json={
            "images": [f"data:image/jpeg;base64,{data}", {"data": data, "mimeType": "image/png", "name": "me.png"}],
            "files": [{"name": "../../x\u0000.txt", "data": base64.b64encode(b"text").decode()}],
        },
    )

    assert response.status_code == 202
    assert [(upload.name, upload.mime_type, upload.data) for upload in host.uploads] == [
        ("image-1.png", "image/png", PNG),
        ("me.png", "image/png", PNG),
        ("../../x\u0000.txt", None, b"text"),
    ]


async def test_what_is_no_image_is_not_taken_as_one(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """A program named .png stays a program."""
    data = base64.b64encode(b"#!/bin/sh\n").decode()
    response = await owner.post("/api/chats/web:main/messages", json={"images": [f"data:image/png;base64,{data}"]})

    assert response.status_code == 400
    assert "files" in response.json()["error"]
    assert not host.uploads


async def test_messages_are_read_page_by_page(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """Oldest first, the newest page unless an earlier one is asked for."""
    for number in range(5):
        host.deliver(MAIN, f"number {number}")
    newest = (await owner.get("/api/chats/web:main/messages", params={"limit": "2"})).json()
    before = (await owner.get("/api/chats/web:main/messages", params={"limit": "2", "before": newest[0]["id"]})).json()

    assert [row["text"] for row in newest] == ["number 3", "number 4"]
    assert [row["text"] for row in before] == ["number 1", "number 2"]
    for limit in ("0", "201", "x", "-1", "9" * 40):
        assert (await owner.get("/api/chats/web:main/messages", params={"limit": limit})).status_code == 400


async def test_a_file_is_fetched_by_its_message_and_shown_only_when_it_is_a_picture(
    owner: httpx2.AsyncClient, stranger: httpx2.AsyncClient, host: MemoryHost, tmp_path: Path
) -> None:
    """No path of this machine is told or taken; a page that the agent wrote does not run here."""
    picture, page = tmp_path / "a", tmp_path / "b"
    picture.write_bytes(PNG)
    page.write_text("<script>alert(1)</script>")
    gone = ChatLogFile(path=tmp_path / "gone", name="gone.txt")
    row = host.deliver(MAIN, "", files=(ChatLogFile(path=picture, name="p.png"), ChatLogFile(path=page, name="p.html"), gone))
    files = (await owner.get("/api/chats/web:main/messages")).json()[0]["files"]
    shown, kept, lost = [await owner.get(file["url"]) for file in files]

    assert str(tmp_path) not in json.dumps(files)
    assert (shown.content, shown.headers["content-type"]) == (PNG, "image/png")
    assert shown.headers["content-disposition"].startswith("inline")
    assert kept.headers["content-type"] == "application/octet-stream"
    assert kept.headers["content-disposition"].startswith("attachment")
    assert lost.status_code == 404
    assert (await stranger.get(files[0]["url"])).status_code == 401
    for wrong in ("3", "-1", "x", "..%2f0"):
        assert (await owner.get(f"/api/chats/web:main/messages/{row.id}/files/{wrong}")).status_code == 404
    assert (await owner.get("/api/chats/web:other/messages/" + row.id + "/files/0")).status_code == 404, "another chat's message"


async def test_sending_delivers_into_the_chat(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """As the host's own message, not as the owner's."""
    file = {"name": "a.txt", "data": base64.b64encode(b"abc").decode()}
    response = await owner.post("/api/chats/telegram:5/send", json={"text": "news", "files": [file]})
    (row,) = host.rows[Address("telegram", "5")]

    assert response.status_code == 202
    assert (row.role, row.text, row.files[0].path.read_bytes()) == ("assistant", "news", b"abc")
    assert (await owner.post("/api/chats/telegram:5/send", json={})).status_code == 400


async def test_a_model_is_switched_or_refused_with_the_hosts_words(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """The reason is for the person at the terminal."""
    good = await owner.post("/api/chats/console:main/model", json={"model": "a/b"})
    bad = await owner.post("/api/chats/console:main/model", json={"model": "ofline"})

    assert good.json() == {"model": "a/b"}
    assert bad.status_code == 400
    assert "offline/assistant" in bad.json()["error"]


async def test_the_chats_are_listed(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """With what the page shows of each."""
    host.deliver(MAIN, "last words")

    assert [(row["address"], row["title"], row["running"]) for row in (await owner.get("/api/chats")).json()] == [
        ("web:main", "last words", False)
    ]


async def test_what_is_not_there_and_what_cannot_be_done_say_so(owner: httpx2.AsyncClient) -> None:
    """In JSON like everything else."""
    missing, wrong = await owner.get("/api/nothing"), await owner.delete("/api/chats")

    assert (missing.status_code, wrong.status_code) == (404, 405)
    assert "/api/openapi.json" in missing.json()["error"]
    assert "DELETE" in wrong.json()["error"]


async def test_a_head_request_for_events_ends(owner: httpx2.AsyncClient, server: HttpServer) -> None:
    """It must not hold a stream that nobody reads."""
    response = await owner.head("/api/chats/web:main/events")

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")
