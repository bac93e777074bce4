"""What somebody else may see and change of a call."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.features.models.rig import SERVERS, Kind, Rig, call
from tests.servers.script import Failure, Reply

every = pytest.mark.parametrize("kind", SERVERS)
SECRETS = ("authorization", "x-api-key", "x-goog-api-key")


class Recorder:
    """Implements ``ProviderHooks``; keeps what it sees and says what it is told to."""

    def __init__(self, *, headers: dict[str, str] | None = None, without: str = "", fields: dict[str, Any] | None = None) -> None:
        self.seen: list[tuple[str, Any]] = []
        self._headers = headers or {}
        self._without = without
        self._fields = fields or {}

    async def headers(self, headers: dict[str, str]) -> dict[str, str]:
        self.seen.append(("headers", dict(headers)))
        return {name: value for name, value in headers.items() if name.lower() != self._without} | self._headers

    async def payload(self, wire_format: str, payload: dict[str, Any]) -> dict[str, Any]:
        self.seen.append((wire_format, payload))
        return payload | self._fields

    async def responded(self, status: int, headers: Mapping[str, str]) -> None:
        self.seen.append(("responded", (status, dict(headers))))

    async def failed(self, message: str) -> None:
        self.seen.append(("failed", message))

    def of(self, kind: str) -> Any:
        (value,) = [value for name, value in self.seen if name == kind]
        return value


@every
async def test_headers_and_payload_are_shown_without_the_key_and_may_change(rig: Rig, kind: Kind) -> None:
    """The order is payload, headers, response."""
    hooks = Recorder(headers={"X-Team": "blue"}, without="user-agent")
    async with kind([Reply(text="x")]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference, hooks=hooks)

    assert outcome.text == "x"
    shown = hooks.of("headers")
    assert not {name.lower() for name in shown} & set(SECRETS)
    assert server.api_key not in str(hooks.seen)
    sent = server.requests[0].headers
    assert sent["x-team"] == "blue"
    assert sent.get("user-agent") != shown.get("User-Agent", shown.get("user-agent"))
    assert hooks.of("responded")[0] == 200
    assert [name for name, _ in hooks.seen][1:] == ["headers", "responded"]


@every
async def test_a_replaced_payload_is_what_is_sent(rig: Rig, kind: Kind) -> None:
    """Raw, in the service's own form."""
    keys = {"openai-completions": "messages", "anthropic-messages": "messages", "openai-responses": "input"}
    hooks = Recorder()
    async with kind([Reply(text="x"), Reply(text="y")]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference, "first", hooks=hooks)
        key = keys.get(outcome.done.api, "contents")
        first = hooks.of(outcome.done.api)[key]
        await call(registry, reference, "second", hooks=Recorder(fields={key: first}))

    assert server.requests[1].body[key] == server.requests[0].body[key]
    assert "first" in str(first)


@every
async def test_a_hook_cannot_take_or_set_the_key(rig: Rig, kind: Kind) -> None:
    """Nor what frames the request; a header that cannot be sent is left out."""
    forged = {"Authorization": "Bearer forged", "x-api-key": "forged", "x-goog-api-key": "forged", "Host": "evil", "X-Bad": "a\r\nb"}
    async with kind([Reply(text="x")]) as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference, hooks=Recorder(headers=forged))

    assert outcome.text == "x"
    assert "x-bad" not in server.requests[0].headers


@every
async def test_an_error_status_and_a_lost_connection_are_told(rig: Rig, kind: Kind) -> None:
    """Also when the call fails."""
    refused, lost = Recorder(), Recorder()
    headers = {"retry-after": "3", "set-cookie": "session=secret"}
    async with kind([Failure(status=429, type="rate_limit_error", message="slow", headers=headers)]) as server:
        registry, reference = rig.connect(server)
        await call(registry, reference, hooks=refused)
    await call(registry, reference, hooks=lost)

    status, shown = refused.of("responded")
    assert (status, shown["retry-after"]) == (429, "3")
    assert "set-cookie" not in shown
    assert lost.of("failed")


@every
async def test_a_payload_that_is_no_json_fails_the_call(rig: Rig, kind: Kind) -> None:
    """Nothing is sent."""
    async with kind() as server:
        registry, reference = rig.connect(server)
        outcome = await call(registry, reference, hooks=Recorder(fields={"x": object()}))

    assert outcome.failed.kind == "invalid"
    assert "an extension made a request" in outcome.error
