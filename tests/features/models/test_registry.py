"""Which models there are, and what is known of them."""

import subprocess
import sys
from typing import Any

import pytest

from features.contracts.errors import OperatorMustAct, UserMustAct
from features.models import ModelOverride, ProviderConfig
from features.models.abilities import claude_version
from features.models.offline import OfflineProvider
from tests.features.models.rig import Rig

ANTHROPIC = ProviderConfig(name="anthropic", kind="anthropic", api_key="k")
OPENAI = ProviderConfig(name="openai", kind="openai", api_key="k")
OLLAMA = ProviderConfig(name="ollama", kind="openai-compatible", base_url="http://127.0.0.1:11434/v1")


async def test_a_listed_model_has_its_window_prices_and_abilities(rig: Rig) -> None:
    """From the maintained price list and the model's name."""
    model = rig.registry(ANTHROPIC).resolve("anthropic/claude-sonnet-5-5")

    assert (model.provider, model.api, model.name) == ("anthropic", "anthropic-messages", "Claude Sonnet 5.5")
    assert (model.context_window, model.max_output) == (1_000_000, 128_000)
    assert (model.input_price, model.output_price, model.cache_read_price, model.cache_write_price) == (2.0, 10.0, 0.1, 2.5)
    assert (model.input, model.reasoning) == (("text", "image"), True)


async def test_an_unknown_model_of_a_known_provider_works_with_defaults(rig: Rig) -> None:
    """New models appear before any list knows them."""
    model = rig.registry(OLLAMA).resolve("ollama/some/new:7b")

    assert model.id == "some/new:7b"
    assert (model.context_window, model.max_output, model.input, model.reasoning) == (128_000, 16_384, ("text",), False)
    assert model.input_price == 0


async def test_the_configuration_corrects_and_adds(rig: Rig) -> None:
    """What it does not say stays as listed."""
    correction = ModelOverride(id="claude-sonnet-5-5", context_window=200_000, prices={"output": 5.0})
    addition = ModelOverride(id="mine", name="My model", input=("text", "image"), reasoning=True, max_output=4096)
    config = ProviderConfig(name="anthropic", kind="anthropic", api_key="k", models=(correction, addition))
    registry = rig.registry(config)
    corrected, mine = registry.resolve("anthropic/claude-sonnet-5-5"), registry.resolve("anthropic/mine")

    assert (corrected.context_window, corrected.input_price, corrected.output_price) == (200_000, 2.0, 5.0)
    assert (mine.name, mine.input, mine.reasoning, mine.max_output) == ("My model", ("text", "image"), True, 4096)
    assert [model.id for model in registry.models()[:2]] == ["claude-sonnet-5-5", "mine"]


async def test_the_list_shows_chat_models_of_configured_providers_and_the_assistant_last(rig: Rig) -> None:
    """Not the hundred others that cannot hold a conversation."""
    names = [model.reference for model in rig.registry(ANTHROPIC, OPENAI).models()]

    assert "anthropic/claude-opus-5-5" in names
    assert "openai/gpt-5.4" in names
    assert not any(word in name for name in names for word in ("tts", "embedding", "realtime", "image", "whisper"))
    assert names[-1] == "offline/assistant"
    assert [model.reference for model in rig.registry().models()] == ["offline/assistant"]


@pytest.mark.parametrize(
    ("reference", "hint"),
    [
        ("offline/asistant", "offline/assistant"),
        ("antropic/claude-sonnet-5-5", "anthropic/claude-sonnet-5-5"),
        ("opus-5", "anthropic/claude-opus-5"),
        ("nothing at all like it", "anthropic"),
        ("", "provider/model"),
        ("anthropic/", "anthropic"),
    ],
)
async def test_an_unknown_reference_names_what_comes_near(rig: Rig, reference: str, hint: str) -> None:
    """The text goes to the person who typed it."""
    with pytest.raises(UserMustAct, match=hint):
        rig.registry(ANTHROPIC).resolve(reference)


async def test_an_id_alone_will_do_where_it_is_clear(rig: Rig) -> None:
    """People leave the provider out."""
    assert rig.registry(ANTHROPIC, OPENAI).resolve("claude-opus-5").reference == "anthropic/claude-opus-5"
    assert rig.registry().resolve("assistant").reference == "offline/assistant"


async def test_the_offline_assistant_is_always_there(rig: Rig) -> None:
    """Under its own name, and under another where the configuration gives one."""
    named = ProviderConfig(name="local-help", kind="offline")
    registry = rig.registry(named)

    assert isinstance(registry.provider("offline"), OfflineProvider)
    assert registry.provider(registry.resolve("local-help/assistant").provider).name == "local-help"


async def test_a_provider_is_made_once_and_an_unknown_one_not_at_all(rig: Rig) -> None:
    """Connections are shared by all sessions."""
    registry = rig.registry(ANTHROPIC)

    assert registry.provider("anthropic") is registry.provider("anthropic")
    with pytest.raises(OperatorMustAct, match=r"providers\.nowhere"):
        registry.provider("nowhere")


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"name": "x", "kind": "antropic"}, r"providers\.x\.kind"),
        ({"name": "x", "kind": "openai-compatible"}, r"providers\.x\.base_url"),
        ({"name": "x", "kind": "openai", "base_url": "localhost:80"}, r"providers\.x\.base_url"),
        ({"name": "a/b", "kind": "openai"}, r"providers\.a/b"),
    ],
)
def test_a_bad_configuration_names_its_key(fields: dict[str, Any], key: str) -> None:
    """Before anything starts."""
    with pytest.raises(OperatorMustAct, match=key):
        ProviderConfig(**fields)


async def test_names_must_be_told_apart(rig: Rig) -> None:
    """Two providers of one name, or a service in the assistant's place."""
    with pytest.raises(OperatorMustAct, match="twice"):
        rig.registry(ANTHROPIC, ANTHROPIC)
    with pytest.raises(OperatorMustAct, match="built-in"):
        rig.registry(ProviderConfig(name="offline", kind="openai"))


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("claude-sonnet-4-5-20250929", ("sonnet", (4, 5))),
        ("claude-opus-4-20250514", ("opus", (4, 0))),
        ("claude-3-7-sonnet-latest", ("sonnet", (3, 7))),
        ("claude-3-haiku", ("haiku", (3, 0))),
        ("claude-opus-5", ("opus", (5, 0))),
        ("anthropic/claude-haiku-5.5", ("haiku", (5, 5))),
        ("claude-fable-5-2", ("fable", (5, 2))),
        ("something-new", ("", (9, 9))),
    ],
)
def test_a_claude_model_is_known_by_family_and_version(name: str, version: tuple[str, tuple[int, int]]) -> None:
    """A date is no version."""
    assert claude_version(name) == version


def test_the_slice_is_light_to_import() -> None:
    """``pumice --help`` must not wait for an SDK; nor a host that only has the offline assistant."""
    code = (
        "import sys, features.models as m; r = m.ModelRegistry([], clock=None, ids=None, max_concurrency=1); r.models(); "
        "r.provider('offline');"
        "heavy = ('anthropic', 'openai', 'google.genai', 'claude_agent_sdk', 'mcp', 'xllamacpp', 'httpx2', 'pydantic', 'genai_prices');"
        "print([n for n in heavy if n in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


async def test_a_marketplace_is_not_listed_but_each_of_its_models_is_known(rig: Rig) -> None:
    """Nine hundred buttons help nobody."""
    market = ProviderConfig(
        name="router", kind="openai-compatible", base_url="https://openrouter.ai/api/v1", models=(ModelOverride(id="mine"),)
    )
    registry = rig.registry(market)

    assert [model.reference for model in registry.models()] == ["router/mine", "offline/assistant"]
    assert registry.resolve("router/anthropic/claude-sonnet-4.5").input_price == 3.0
