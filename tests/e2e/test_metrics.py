"""The numbers an owner watches: of a whole host, read as Prometheus reads them."""

from pathlib import Path

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.e2e.rig import configured, running, with_anthropic, with_telegram
from tests.e2e.test_host import OWNER, until
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Reply
from tests.servers.telegram import Fault, serve_telegram


def samples(text: str) -> dict[str, float]:
    """Every sample by its name and labels."""
    return {
        sample.name + "".join(f" {key}={value}" for key, value in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_what_happened_is_counted_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    """In, out, how long it took, what it cost, what was put off; with the token alone."""
    async with serve_telegram() as telegram, AnthropicServer([Reply(text="the answer", input_tokens=100, output_tokens=20)]) as model:
        telegram.fail("sendMessage", Fault(code=500, description="Internal Server Error"))
        async with (
            running(configured(tmp_path, with_telegram(telegram) + with_anthropic(model))) as (host, _),
            httpx2.AsyncClient(base_url=host.url) as http,
        ):
            telegram.say(OWNER, "my secret question")
            await telegram.until(lambda: telegram.texts(OWNER))
            await until(lambda: host.outbox.idle)
            token = (host.config.host.data_dir / "http.token").read_text().strip()
            refused = await http.get("/metrics")
            told = await http.get("/metrics", headers={"authorization": f"Bearer {token}"})

    found = samples(told.text)
    assert refused.status_code == 401
    assert told.headers["content-type"].startswith("text/plain")
    for name, value in {
        "pumice_messages_received_total channel=telegram": 1,
        "pumice_messages_delivered_total channel=telegram": 1,
        "pumice_delivery_retries_total channel=telegram": 1,
        "pumice_runs_total end=done": 1,
        "pumice_model_tokens_total kind=output model=anthropic/claude-sonnet-5-5": 20,
        "pumice_first_text_seconds_count": 1,
        "pumice_answer_seconds_count": 1,
        "pumice_channel_working channel=telegram": 1,
        "pumice_inbox_waiting": 0,
        "pumice_outbox_waiting": 0,
        "pumice_jobs_late_total": 0,
    }.items():
        assert found[name] == value, name
    assert found["pumice_model_cost_usd_total model=anthropic/claude-sonnet-5-5"] > 0
    assert found["pumice_channel_last_event_timestamp_seconds channel=telegram"] > 1e9
    assert "secret question" not in told.text
    assert "the answer" not in told.text


@pytest.mark.parametrize("on", [True, False])
async def test_it_can_be_switched_off(tmp_path: Path, on: bool) -> None:
    """Then there is nothing there."""
    config = configured(tmp_path, f"[observability]\nprometheus = {str(on).lower()}\n")
    async with running(config) as (host, _), httpx2.AsyncClient(base_url=host.url) as http:
        token = (host.config.host.data_dir / "http.token").read_text().strip()
        told = await http.get("/metrics", headers={"authorization": f"Bearer {token}"})

    assert told.status_code == (200 if on else 404)
