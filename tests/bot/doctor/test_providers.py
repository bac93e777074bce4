"""What stands in the way of a model's service."""

from pathlib import Path

import pytest

from bot.doctor import Finding, examine
from features.contracts.testing import FakeClock
from tests.features.models.rig import SERVERS, Kind
from tests.servers.anthropic import AnthropicServer
from tests.servers.google import GoogleServer
from tests.servers.openai import OpenAIServer

KINDS = {AnthropicServer: "anthropic", GoogleServer: "google"}


async def look(folder: Path, text: str, key: str = "key-0123456789") -> Finding:
    """The finding about the first provider."""
    (folder / "pumice.toml").write_text(f"processes.sandbox = 'none'\n{text}")
    found = await examine(None, {"TZ": "Europe/Vienna", "KEY": key, "PATH": ""}, folder, FakeClock())
    return next(finding for finding in found if finding.check == "models")


def section(server: AnthropicServer | OpenAIServer | GoogleServer, kind: str) -> str:
    base = server.url if kind in ("anthropic", "google") else f"{server.url}/v1"
    return f"[providers.mine]\nkind = '{kind}'\napi_key = 'env:KEY'\nbase_url = '{base}'\n"


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_key_is_shown_to_its_service(tmp_path: Path, kind: Kind) -> None:
    """A wrong one is found before the first message is."""
    async with kind() as server:
        text = section(server, KINDS.get(kind, "openai"))  # type: ignore[arg-type]
        right = await look(tmp_path, text, server.api_key)
        wrong = await look(tmp_path, text, "no-such-key")

    assert (right.state, wrong.state) == ("ok", "wrong")
    assert "does not take the API key" in wrong.what
    assert wrong.fix.startswith("Correct providers.mine.api_key")
    assert "no-such-key" not in str(wrong)


async def test_a_service_that_is_away_is_told(tmp_path: Path) -> None:
    """With the setting that may be wrong."""
    async with OpenAIServer(compatible=True) as server:
        text = section(server, "openai-compatible")
    finding = await look(tmp_path, text)

    assert finding.state == "wrong"
    assert "does not answer (ConnectError)" in finding.what
    assert "providers.mine.base_url" in finding.fix


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("kind = 'claude-code'\ncommand = '/nowhere/claude'", "there is no claude program", "providers.mine.command"),
        ("kind = 'local'\n[[providers.mine.models]]\nid = 'm'\nfile = 'm.gguf'", "m.gguf, the file of m, is not there", "Correct its file"),
        ("kind = 'local'\n[[providers.mine.models]]\nid = 'm'", "nothing says where the weights of m are", "Set its file"),
    ],
)
async def test_what_is_missing_on_this_machine_is_told(tmp_path: Path, text: str, what: str, fix: str) -> None:
    """Each kind needs something else."""
    finding = await look(tmp_path, f"[providers.mine]\n{text}\n")

    assert finding.state == "wrong"
    assert what in finding.what or "is not installed" in finding.what
    assert fix in finding.fix or "pip install" in finding.fix
