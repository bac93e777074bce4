"""Asks Slack what it thinks of the app."""

import logging
from typing import TYPE_CHECKING, Any

from bot.config.chat_sections import SlackSection
from bot.doctor.finding import Finding, good, warning, wrong

if TYPE_CHECKING:
    import httpx2

__all__ = ["examine_slack"]

_PATIENCE_S = 10.0
_WHERE_TOKENS_ARE = "Copy it again from api.slack.com/apps: OAuth & Permissions for the bot token, Basic Information for the app token"


async def examine_slack(options: SlackSection, public_url: str) -> list[Finding]:
    """Findings about the app: its tokens, the scopes it lacks, and where Slack would send events."""
    import httpx2

    if options.bot_token is None:
        return [good("slack", "off; it comes on with channels.slack.bot_token")]
    for name in ("httpx2", "httpcore2"):
        logging.getLogger(name).setLevel(logging.WARNING)
    async with httpx2.AsyncClient(timeout=_PATIENCE_S) as client:
        findings = await _bot(client, options, options.bot_token)
        if findings[0].state == "ok" and options.mode == "socket" and options.app_token is not None:
            findings.append(await _app(client, options, options.app_token))
    if options.mode == "http":
        findings.append(_request_url(public_url))
    return findings


async def _bot(client: "httpx2.AsyncClient", options: SlackSection, token: str) -> list[Finding]:
    from channels.slack import REQUIRED_SCOPES

    told = await _call(client, options, token, "auth.test")
    if isinstance(told, Finding):
        return [told]
    answer, scopes = told
    if not answer.get("ok"):
        return [wrong("slack", f"the bot token was refused ({answer.get('error', 'no reason given')})", _WHERE_TOKENS_ARE)]
    findings = [good("slack", f"the token is {answer.get('user', '?')}'s in {answer.get('team', '?')}, {answer.get('team_id', '?')}")]
    if not scopes:
        return findings
    missing = sorted(set(REQUIRED_SCOPES) - scopes)
    if missing:
        lacks = "; ".join(f"{scope} (to {REQUIRED_SCOPES[scope]})" for scope in missing)
        findings.append(
            wrong("slack scopes", f"missing: {lacks}", "Add them with the manifest of 'pumice slack manifest', and install the app again")
        )
    else:
        findings.append(good("slack scopes", "all there"))
    return findings


async def _app(client: "httpx2.AsyncClient", options: SlackSection, token: str) -> Finding:
    told = await _call(client, options, token, "apps.connections.open")
    if isinstance(told, Finding):
        return told
    if told[0].get("ok"):
        return good("slack socket", "the app token opens connections")
    reason = told[0].get("error", "no reason given")
    return wrong(
        "slack socket", f"the app token was refused ({reason})", "Make one with the scope connections:write, and switch Socket Mode on"
    )


def _request_url(public_url: str) -> Finding:
    if public_url:
        return good("slack events", f"Slack is to call {public_url.rstrip('/')}/slack/events")
    return warning(
        "slack events", "http.public_url is not set, so this cannot tell where Slack is to call", "Set it to the proxy's address"
    )


async def _call(
    client: "httpx2.AsyncClient", options: SlackSection, token: str, method: str
) -> tuple[dict[str, Any], frozenset[str]] | Finding:
    import httpx2

    fix = "Look at the network and at channels.slack.api_url"
    try:
        response = await client.post(f"{options.api_url.rstrip('/')}/{method}", headers={"Authorization": f"Bearer {token}"})
        answer = response.json()
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return wrong("slack", f"{options.api_url} does not answer ({type(error).__name__})", fix)
    except ValueError:
        return wrong("slack", f"{options.api_url} answers with something else than JSON", "Correct channels.slack.api_url")
    if not isinstance(answer, dict):
        return wrong("slack", f"{options.api_url} answers with something else than Slack does", "Correct channels.slack.api_url")
    scopes = response.headers.get("x-oauth-scopes", "")
    return answer, frozenset(scope.strip() for scope in scopes.split(",") if scope.strip())
