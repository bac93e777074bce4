"""Sessions, usage, access, commands, and the document that describes them all."""

from datetime import UTC, date, datetime, timedelta

import httpx2
from starlette.routing import Route

from bot.http.app import build_app
from bot.http.auth import Credentials
from bot.http.guard import HostNames
from bot.http.host_view import AccessMember, PairingRequest, SessionDetail, UsageLine
from bot.http.testing import MemoryHost
from features.contracts.messages import UserMessage
from features.contracts.sessions import MessageEntry, SessionHeader, SessionSummary

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


def session(identifier: str, scope: str) -> SessionDetail:
    summary = SessionSummary(id=identifier, scope=scope, name="", created_at=NOW, modified_at=NOW, message_count=1, first_message="hi")
    entry = MessageEntry(id="e1", parent_id=None, timestamp="2026-01-05T09:00:00.000Z", message=UserMessage(content="hi", timestamp=1))
    header = SessionHeader(version=3, id=identifier, timestamp="2026-01-05T09:00:00.000Z", cwd="/")
    return SessionDetail(summary=summary, header=header, entries=[entry], leaf_id="e1")


async def test_sessions_are_listed_shown_and_deleted(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """An entry has pi's form."""
    host.kept_sessions = {"s1": session("s1", "web:main"), "s2": session("s2", "telegram:5")}
    everything = (await owner.get("/api/sessions")).json()
    of_chat = (await owner.get("/api/sessions", params={"chat": "telegram:5"})).json()
    shown = (await owner.get("/api/sessions/s1")).json()
    deleted = [(await owner.delete("/api/sessions/s1")).status_code for _ in range(2)]

    assert [row["id"] for row in everything] == ["s1", "s2"]
    assert [row["id"] for row in of_chat] == ["s2"]
    assert shown["entries"][0]["message"] == {"role": "user", "content": "hi", "timestamp": 1}
    assert shown["entries"][0]["parentId"] is None
    assert deleted == [204, 404]
    assert (await owner.get("/api/sessions", params={"chat": "nonsense"})).status_code == 400


async def test_usage_is_told_by_day_and_chat(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """A month unless said otherwise."""
    today = host.clock.now().date()

    def line(place: str, day: date) -> UsageLine:
        return UsageLine(place=place, day=day, model="m", calls=1, input=2, output=3, cache_read=0, cache_write=0, cost=0.5)

    host.usage_lines = [line("web:main", today), line("telegram:5", today), line("web:main", today - timedelta(days=40))]

    assert [row["place"] for row in (await owner.get("/api/usage")).json()] == ["web:main", "telegram:5"]
    of_topic = (await owner.get("/api/usage", params={"chat": "telegram:5/9", "since": "2020-01-01"})).json()
    assert [row["place"] for row in of_topic] == ["telegram:5"], "a topic's usage is its chat's"
    assert (await owner.get("/api/usage", params={"since": "yesterday"})).status_code == 400


async def test_access_is_shown_given_and_taken(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """The same that an owner says in a chat."""
    host.members["telegram:1"] = AccessMember(id="telegram:1", owner=True, source="configuration")
    host.pending.append(PairingRequest(id="telegram:7", name="Ann", code="ABCD", expires_at=NOW))
    before = (await owner.get("/api/access")).json()
    wrong = await owner.post("/api/access/approve", json={"code": "NOPE"})
    right = await owner.post("/api/access/approve", json={"code": "ABCD"})
    revoked = [(await owner.post("/api/access/revoke", json={"id": "telegram:7"})).status_code for _ in range(2)]

    assert before["pending"][0]["code"] == "ABCD"
    assert (wrong.status_code, right.status_code, revoked) == (400, 200, [204, 404])
    assert "Ann" in right.json()["text"]


async def test_the_commands_are_listed_for_completion(owner: httpx2.AsyncClient) -> None:
    """Names without the slash."""
    assert {"name": "stop", "description": "Stop the run"} in (await owner.get("/api/commands")).json()


async def test_the_document_describes_every_route_and_nothing_else(owner: httpx2.AsyncClient, host: MemoryHost) -> None:
    """What is not described is not promised."""
    document = (await owner.get("/api/openapi.json")).json()
    app = build_app(
        host,
        credentials=Credentials("token-of-test", host.clock),
        names=HostNames("127.0.0.1"),
        clock=host.clock,
        identity="i",
        webhooks={},
    )
    routed = {
        (route.path.replace(":path", ""), method)
        for route in app.routes
        if isinstance(route, Route) and not route.path.startswith("/static") and route.path != "/"
        for method in (route.methods or set()) - {"HEAD"}
    }
    described = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}

    assert described == routed
    assert document["openapi"].startswith("3.1")
    assert document["info"]["version"] == "1.2.3"


async def test_the_documents_references_lead_somewhere(owner: httpx2.AsyncClient) -> None:
    """A generator of clients would stop at one that does not."""
    text = (await owner.get("/api/openapi.json")).text
    document = (await owner.get("/api/openapi.json")).json()
    names = {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}

    assert names
    assert names <= set(document["components"]["schemas"])
    for methods in document["paths"].values():
        for operation in methods.values():
            assert operation.get("security") == [] or "401" in operation["responses"]
