"""Jobs and webhooks over HTTP: shapes, guards, errors."""

import hmac

import httpx2
import pytest

from bot.http.testing import MemoryHost


def signed(host: MemoryHost, body: bytes) -> dict[str, str]:
    return {"x-pumice-signature": hmac.new(host.hook_secret.encode(), body, "sha256").hexdigest()}


async def test_jobs_need_the_token(stranger: httpx2.AsyncClient, host: MemoryHost) -> None:
    """They say what a chat is about."""
    host.known_jobs["1"] = {"id": "1", "chat": "web:main"}
    answers = [
        await stranger.get("/api/jobs"),
        await stranger.get("/api/jobs/1"),
        await stranger.post("/api/jobs", json={"chat": "web:main", "text": "in 1 day x"}),
        await stranger.post("/api/jobs/1/run"),
        await stranger.delete("/api/jobs/1"),
    ]

    assert [answer.status_code for answer in answers] == [401] * 5
    assert list(host.known_jobs) == ["1"]


async def test_jobs_are_made_listed_changed_and_removed(owner: httpx2.AsyncClient) -> None:
    """By their ids."""
    made = await owner.post("/api/jobs", json={"chat": "web:main", "text": "in 1 day x"})
    assert (made.status_code, made.json()["prompt"]) == (201, "in 1 day x")
    job = made.json()["id"]
    assert [(await owner.post(f"/api/jobs/{job}/{action}")).json()["text"] for action in ("run", "pause", "resume")] == [
        f"{action} {job}" for action in ("run", "pause", "resume")
    ]
    assert (await owner.get("/api/jobs", params={"chat": "web:main"})).json() == [made.json()]
    assert (await owner.get("/api/jobs", params={"chat": "web:other"})).json() == []
    assert (await owner.delete(f"/api/jobs/{job}")).status_code == 200
    assert (await owner.get(f"/api/jobs/{job}")).status_code == 404


@pytest.mark.parametrize(
    ("body", "status"),
    [({"chat": "web:main"}, 400), ({"chat": "web", "text": "x"}, 400), ({"chat": "irc:x", "text": "x"}, 404), ([], 400)],
)
async def test_what_is_no_job_is_refused(owner: httpx2.AsyncClient, body: object, status: int) -> None:
    """With a text that says why."""
    answer = await owner.post("/api/jobs", json=body)

    assert answer.status_code == status
    assert answer.json()["error"]


async def test_a_hook_takes_what_is_signed_and_nothing_else(stranger: httpx2.AsyncClient, host: MemoryHost) -> None:
    """Its body is taken as it came, byte by byte."""
    body = b'{"n":\xff 1}\n'
    assert (await stranger.post("/hooks/builds", content=body, headers=signed(host, body))).json() == {"id": "1", "duplicate": False}
    assert host.woken == [("builds", body, "")]
    for headers in ({}, signed(host, b"other"), {"x-pumice-signature": ""}, {"authorization": "Bearer x"}):
        assert (await stranger.post("/hooks/builds", content=body, headers=headers)).status_code == 401
    assert (await stranger.post("/hooks/nothing", content=body, headers=signed(host, body))).status_code == 404
    assert (await stranger.post("/hooks/builds/../builds/x", content=body, headers=signed(host, body))).status_code == 404
    assert len(host.woken) == 1


@pytest.mark.parametrize("header", ["x-pumice-delivery", "webhook-id", "x-github-delivery", "idempotency-key"])
async def test_a_delivery_that_comes_again_is_told_so(stranger: httpx2.AsyncClient, host: MemoryHost, header: str) -> None:
    """Senders repeat what they are not sure of."""
    answers = [await stranger.post("/hooks/builds", content=b"x", headers={**signed(host, b"x"), header: "d1"}) for _ in range(2)]

    assert [(answer.status_code, answer.json()["duplicate"]) for answer in answers] == [(202, False), (202, True)]
