"""A host in memory that answers like a model: it thinks, runs a tool and streams Markdown."""

import asyncio
from pathlib import Path

from bot.clock import SystemClock
from bot.http.chat_log import ChatLogRow
from bot.http.testing import MemoryHost
from features.contracts.chat import Address, Button
from features.contracts.events import (
    AgentSettled,
    AgentStart,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    ToolExecutionEnd,
    ToolExecutionStart,
)
from features.contracts.messages import AssistantMessage, TextBlock, Usage
from features.contracts.stream import TextDelta

__all__ = ["ANSWER", "PlayingHost"]

ANSWER = """\
Here is what I found in **three** files:

1. `inbox.py` stores first and acknowledges *then*
2. `outbox.py` keeps the order
   - per chat
   - and across restarts

```python
async def accept(messages):
    await journal.append(messages)  # on the disk before anybody hears of it
    return len(messages)
```

| file | lines | tested |
|---|---:|:--:|
| inbox.py | 210 | yes |
| outbox.py | 187 | yes |

> A message is never lost, <b>not even</b> by `kill -9`.

More at https://example.org/docs, or [read the source](https://example.org/source).
"""


class PlayingHost(MemoryHost):
    """``hold`` keeps a run going until it is set; ``/stop`` sets it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(SystemClock(), folder)
        self.hold = asyncio.Event()
        self.hold.set()
        self.reply = self._play
        self._tasks: set[asyncio.Task[None]] = set()

    async def settle(self) -> None:
        await asyncio.gather(*self._tasks)

    def _play(self, address: Address, row: ChatLogRow) -> None:
        if row.text == "/stop":
            self.hold.set()
        elif row.text == "/model":
            choices = (Button(label="Sonnet", command="/model sonnet"), Button(label="Offline", command="/model offline"))
            self.deliver(address, "Which model shall answer here?", answers=(row.id,), buttons=(choices,))
        elif row.text.startswith("/"):
            self.deliver(address, f"Done: `{row.text}`", answers=(row.id,))
        else:
            task = asyncio.get_running_loop().create_task(self._run(address, row))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, address: Address, row: ChatLogRow) -> None:
        self.publish(
            address,
            AgentStart(),
            ToolExecutionStart(tool_call_id="1", tool_name="grep", args={"pattern": "def accept"}),
            ToolExecutionEnd(tool_call_id="1", tool_name="grep", content=[TextBlock(text="inbox.py:12: async def accept")], is_error=False),
            MessageStart(role="assistant"),
        )
        for start in range(0, len(ANSWER), 7):
            self.publish(address, MessageUpdate(assistant_message_event=TextDelta(content_index=0, delta=ANSWER[start : start + 7])))
            if start == len(ANSWER) // 2 // 7 * 7:
                await self.hold.wait()
            await asyncio.sleep(0)
        message = AssistantMessage(
            content=[TextBlock(text=ANSWER)], api="x", provider="offline", model="m", usage=Usage(), stop_reason="stop", timestamp=0
        )
        self.publish(address, MessageEnd(message=message, entry_id="e"))
        self.deliver(address, ANSWER, answers=(row.id,))
        self.publish(address, AgentSettled(outcome="success"))
