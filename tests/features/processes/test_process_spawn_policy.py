from pathlib import Path

import pytest

from features.contracts.errors import ModelMustAct, OperatorMustAct
from features.contracts.processes import ProcessSpawnEvent, ProcessSpawnRequest
from features.processes import ProcessPolicyOptions, ProcessSpawnPolicy, SecretRedactor

HOST = {
    "PATH": "/bin",
    "HOME": "/home/bot",
    "LC_ALL": "C.UTF-8",
    "EDITOR": "ed",
    "MY_REGION": "eu",
    "TELEGRAM_BOT_TOKEN": "not-known-to-anyone",
    "my_secret_thing": "lower case",
    "PUMICE_HTTP__PORT": "1",
    "DATABASE_DSN": "postgres://",
    "LANG": "holds secret-value inside",
}


def request_with(**fields: object) -> ProcessSpawnRequest:
    return ProcessSpawnRequest(**{"argv": ("env",), "cwd": Path("/"), "purpose": "bash", **fields})  # type: ignore[arg-type]


def policy_of(*hooks: object, inherit: str = "safe", allow: tuple[str, ...] = ()) -> ProcessSpawnPolicy:
    redactor = SecretRedactor()
    redactor.add("secret-value", name="a test secret")
    options = ProcessPolicyOptions(inherit=inherit, allow=allow)  # type: ignore[arg-type]
    return ProcessSpawnPolicy(options, redactor=redactor, environ=HOST, hooks=hooks)  # type: ignore[arg-type]


async def test_only_the_safe_base_is_inherited_by_default() -> None:
    """An agent that prints its environment must find nothing in it."""
    spawn = await policy_of().prepare(request_with())

    assert spawn.environment == {"PATH": "/bin", "HOME": "/home/bot", "LC_ALL": "C.UTF-8"}


async def test_inheriting_all_still_leaves_out_what_is_denied() -> None:
    """Names that look like credentials, in either case, and the host's own settings."""
    spawn = await policy_of(inherit="all").prepare(request_with())

    assert set(spawn.environment) == {"PATH", "HOME", "LC_ALL", "EDITOR", "MY_REGION"}


async def test_allow_adds_by_pattern_and_deny_wins_over_the_pattern() -> None:
    """A wide pattern is no decision about a token that happens to fit it."""
    spawn = await policy_of(allow=("MY_*", "TELEGRAM_*")).prepare(request_with())

    assert spawn.environment["MY_REGION"] == "eu"
    assert set(spawn.environment) == {"PATH", "HOME", "LC_ALL", "MY_REGION"}


async def test_a_name_written_out_in_allow_is_passed() -> None:
    """Whoever names the variable means it."""
    spawn = await policy_of(allow=("TELEGRAM_BOT_TOKEN",)).prepare(request_with())

    assert spawn.environment["TELEGRAM_BOT_TOKEN"] == "not-known-to-anyone"


async def test_a_known_secret_is_not_inherited_whatever_its_name() -> None:
    """The value counts, not only the name."""
    spawn = await policy_of(inherit="all", allow=("LANG",)).prepare(request_with())

    assert "LANG" not in spawn.environment


async def test_the_requests_own_variables_are_never_filtered() -> None:
    """A server that needs a token is given it on purpose."""
    spawn = await policy_of().prepare(request_with(environment={"API_TOKEN": "secret-value"}))

    assert spawn.environment["API_TOKEN"] == "secret-value"


async def test_the_zone_of_the_chat_is_the_zone_of_its_processes() -> None:
    """``date`` tells the person's time, not the server's."""
    spawn = await policy_of().prepare(request_with(time_zone="Asia/Tokyo"))

    assert spawn.environment["TZ"] == "Asia/Tokyo"


async def test_hooks_run_in_order_and_each_sees_what_the_one_before_made() -> None:
    """A sandbox wraps the command that an earlier hook changed."""

    async def wrap(event: ProcessSpawnEvent) -> None:
        event.argv = ("box", *event.argv)
        event.environment["BOX"] = "1"

    async def wrap_again(event: ProcessSpawnEvent) -> None:
        event.argv = ("outer", *event.argv, event.environment["BOX"])

    spawn = await policy_of(wrap, wrap_again).prepare(request_with())

    assert spawn.argv == ("outer", "box", "env", "1")
    assert spawn.environment["BOX"] == "1"


@pytest.mark.parametrize("raised", [RuntimeError("defect"), ModelMustAct("defect"), OperatorMustAct("defect")])
async def test_a_hook_that_raises_refuses_the_spawn(raised: Exception) -> None:
    """There is no way around a check that failed."""

    async def refuse(event: ProcessSpawnEvent) -> None:
        raise raised

    with pytest.raises(ModelMustAct):
        await policy_of(refuse).prepare(request_with())
