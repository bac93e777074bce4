r"""Asks the person before a dangerous command runs.

A gate: a handler of ``ToolCalled`` looks at each call before it runs. It blocks one by calling ``event.block``; the model reads the reason
and goes on. If the handler raised, the call would be blocked too.

Configuration, all of it optional::

    [extensions.config.permission-gate]
    dangerous = ['\brm\b', '\bsudo\b']    # regular expressions, looked for in the command
    timeout_s = 120                          # no answer in this time is a no
"""

import re

from features.contracts.extension_events import ToolCalled
from features.contracts.extensions import ExtensionApi

DANGEROUS = [r"\brm\b", r"\bsudo\b", r"\bmkfs\b", r"\bdd\b", r">\s*/dev/", r"\bchmod\s+(-R\s+)?777\b", r"\bgit\s+push\b.*--force"]


async def activate(api: ExtensionApi) -> None:
    patterns = [re.compile(pattern) for pattern in api.config.get("dangerous", DANGEROUS)]
    timeout_s = float(api.config.get("timeout_s", 120))

    async def ask(event: ToolCalled) -> None:
        if event.call.name != "bash":
            return
        command = str(event.arguments.get("command", ""))
        if not any(pattern.search(command) for pattern in patterns):
            return
        # In a chat without a person, and when nobody answers, `confirm` gives False.
        if not await api.ui.confirm("Run this command?", f"```\n{command}\n```", timeout_s=timeout_s):
            event.block("The person did not allow this command. Ask what to do instead.")

    api.on(ToolCalled, ask, priority=100)  # before those of others: what is refused needs no further look
