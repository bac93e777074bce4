"""Claude Code's program: where it is and the environment that it gets."""

import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from features.models.config import ProviderConfig

__all__ = ["claude_environment", "claude_program"]

_PASSED_ON = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "TERM", "TZ", "TMPDIR", "CLAUDE_CONFIG_DIR"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS"),
)
_OURS = {
    "CLAUDE_CODE_ENTRYPOINT": "sdk-py",
    "CLAUDE_CODE_MAX_RETRIES": "0",  # the agent retries, and says so
    "DISABLE_AUTO_COMPACT": "1",  # so does compaction
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "ENABLE_TOOL_SEARCH": "false",  # all tools are offered from the start
    "MCP_TOOL_TIMEOUT": str(24 * 3600 * 1000),  # a tool has its own timeout, or waits for a person
    "MAX_MCP_OUTPUT_TOKENS": "1000000",  # results are cut before they come here
}
_OAUTH = "sk-ant-oat"


def claude_environment(config: ProviderConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """All that the program gets: a fixed list of the host's variables, and the key of the configuration alone.

    This is no part of the policy for what agents start, on purpose: that one hides keys, and this program cannot work without one.
    """
    chosen = {name: value for name, value in environ.items() if name in _PASSED_ON or name.startswith("LC_")}
    chosen.update(_OURS)
    key = config.api_key
    if key:
        chosen["CLAUDE_CODE_OAUTH_TOKEN" if key.startswith(_OAUTH) else "ANTHROPIC_API_KEY"] = key
    if config.base_url:
        chosen["ANTHROPIC_BASE_URL"] = config.base_url
    return chosen


def claude_program(config: ProviderConfig) -> str | None:
    """The program: the configured one, the one that the SDK's larger package brings, or the one on the PATH."""
    if config.command:
        return shutil.which(os.path.expanduser(config.command))  # noqa: PTH111 - a bare name is looked up, which Path cannot do
    spec = find_spec("claude_agent_sdk")
    for folder in (spec and spec.submodule_search_locations) or ():
        bundled = Path(folder) / "_bundled" / "claude"
        if bundled.is_file():
            return str(bundled)
    return shutil.which("claude")
