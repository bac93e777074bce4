"""A day of a Telegram group and a Slack channel, with faults and two restarts; what people see in the end is compared as a whole."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_host import until
from tests.e2e.test_kill import Child
from tests.servers.anthropic import AnthropicServer
from tests.servers.script import Call, Reply
from tests.servers.slack import Fault as SlackFault
from tests.servers.slack import SlackServer, serve_slack
from tests.servers.slack_world import APP_TOKEN, BOT_TOKEN
from tests.servers.telegram import TOKEN, Fault, FileIn, TelegramServer, User, serve_telegram

GROUP, TOPIC = -2002, 7
ANNA, BOB = User(1001, "Anna"), User(1002, "Bob")
BOT = "@pumice_bot"
REPORT = "a,b\n1,2\n"

TELEGRAM_DAY = """
Anna [7]: @pumice_bot what is the capital of Austria?
pumice [7] to 1: Vienna.
Bob: @pumice_bot and of France?
pumice to 3: Paris.
Anna: we meet at nine
Anna [7]: @pumice_bot make the report
pumice [7]: The connection broke while I was sending, so you may have this already:
pumice [7]: (report.csv)
pumice [7] to 6: Done, with one row.
Bob: @pumice_bot is this a picture? (notes.txt)
pumice to 10: A text of 5 bytes.
Anna: @pumice_bot remember that the meeting is at ten
pumice to 12: Nine it is.
Bob: @pumice_bot when is it?
pumice to 14: At ten.
Anna: @pumice_bot think for long
pumice to 16: After long thought: yes.
Bob: @pumice_bot are you back?
pumice to 18: I am back.
Anna [7]: @pumice_bot and you?
pumice [7] to 20: Here as well.
""".strip()

SLACK_DAY = """
Ann: The build is red
  Ann: <@U0BOT> why?
  pumice: Anna says: The build is red.
Bob: <@U0BOT> clean up
  pumice: May I run this command? | rm -rf build | "Allow always for this chat" is for this very command. | Bob: Allow once
  pumice: Cleaned up.
Ann: <@U0BOT> still there?
  pumice: Still here.
Bob: <@U0BOT> once more
  pumice: Once more, then.
""".strip()


def respond(body: dict[str, Any]) -> Reply:
    """What a model would say, by what was said last."""
    last = str(body["messages"][-1]["content"])
    if "tool_result" in last:
        asked = str([each for each in body["messages"] if each["role"] == "user" and "tool_result" not in str(each["content"])][-1])
        if "report" not in asked:
            return Reply(text="Cleaned up.")
        sent = sum("tool_result" in str(each["content"]) for each in body["messages"])
        if sent % 2:
            return Reply(calls=[Call(name="send", arguments={"path": "report.csv"})])
        return Reply(text="Done, with one row.")
    said: list[tuple[str, Callable[[], Reply]]] = [
        ("Austria", lambda: Reply(text="Vienna.")),
        ("France", lambda: Reply(text="Paris.")),
        ("make the report", lambda: Reply(calls=[Call(name="write", arguments={"path": "report.csv", "content": REPORT})])),
        ("is this a picture", lambda: Reply(text="A text of 5 bytes.")),
        ("when is it", lambda: Reply(text="At ten." if "at ten" in last else "At nine.")),
        ("remember that", lambda: Reply(text="Nine it is.")),
        ("think for long", lambda: Reply(text="After long thought: yes.", delay_s=1.0)),
        ("are you back", lambda: Reply(text="I am back.")),
        ("and you?", lambda: Reply(text="Here as well.")),
        ("why?", lambda: Reply(text="Anna says: The build is red." if "Ann: The build is red" in last else "I do not know.")),
        ("clean up", lambda: Reply(calls=[Call(name="bash", arguments={"command": "rm -rf build"})])),
        ("still there", lambda: Reply(text="Still here.")),
        ("once more", lambda: Reply(text="Once more, then.")),
    ]
    return next(make() for words, make in said if words in last)


def telegram_view(telegram: TelegramServer) -> str:
    """The group as everybody in it sees it."""
    lines = []
    for shown in telegram.world.messages[GROUP].values():
        who = "pumice" if shown.own else telegram.world.names[GROUP, shown.id]
        where = f" [{shown.thread}]" if shown.thread else ""
        quoted = f" to {shown.reply_to}" if shown.own and shown.reply_to else ""
        file = f"({shown.file_name})" if shown.file_name else ""
        lines.append(f"{who}{where}{quoted}: " + " ".join(part for part in (shown.text, file) if part))
    return "\n".join(lines)


def slack_view(slack: SlackServer) -> str:
    """The channel with its threads."""
    lines: list[str] = []
    conversation = slack.world.conversations["C1"].values()
    for root in (each for each in conversation if each.thread is None):
        for shown in (root, *(each for each in conversation if each.thread == root.ts)):
            who = "pumice" if shown.own else slack.world.people[shown.user]
            text = re.sub(r"\s*\n\s*", " | ", re.sub(r"[`*_]", "", shown.shown).strip())
            lines.append(f"{'  ' if shown.thread else ''}{who}: {text}")
    return "\n".join(lines)


def configure(folder: Path, telegram: TelegramServer, slack: SlackServer, model: AnthropicServer) -> None:
    (folder / "pumice.toml").write_text(f"""
[access]
owners = ["telegram:{ANNA.id}", "slack:T1/U1ANN"]
groups = ["telegram:{GROUP}", "slack:T1/C1"]
[approvals]
bash = "ask"
[http]
port = 0
[models]
default = "anthropic/claude-sonnet-5-5"
[providers.anthropic]
api_key = "{model.api_key}"
base_url = "{model.url}"
[retry]
base_delay_s = 0.05
[chat]
stream = false
[channels.telegram]
token = "{TOKEN}"
api_url = "{telegram.url}"
max_sends_per_second = 0
[channels.slack]
bot_token = "{BOT_TOKEN}"
app_token = "{APP_TOKEN}"
api_url = "{slack.url}/api/"
[channels.web]
enabled = false
""")


class Day:
    def __init__(self, telegram: TelegramServer, slack: SlackServer) -> None:
        self.telegram = telegram
        self.slack = slack

    async def group(self, who: User, text: str, answer: str, *, thread: int | None = None, file: FileIn | None = None) -> None:
        """Somebody speaks in the group, and the answer is waited for."""
        self.telegram.say(GROUP, f"{BOT} {text}", user=who, thread=thread, file=file)
        await self.telegram.until(lambda: answer in self.telegram.texts(GROUP), within=20)

    async def channel(self, user: str, text: str, answer: str, *, thread: str | None = None) -> str:
        said = self.slack.say("C1", f"<@U0BOT> {text}", user=user, thread=thread)
        root = thread or said
        await self.slack.until(lambda: any(answer in text for text in self.slack.texts("C1", thread=root)), within=20)
        return root

    async def morning(self) -> None:
        """A topic, the group itself, a thread that knows what was said, a file each way; the platforms stumble meanwhile."""
        telegram, slack = self.telegram, self.slack
        await self.group(ANNA, "what is the capital of Austria?", "Vienna.", thread=TOPIC)
        telegram.fail("sendMessage", Fault(code=429, description="Too Many Requests: retry after 1", parameters={"retry_after": 1}))
        await self.group(BOB, "and of France?", "Paris.")
        telegram.say(GROUP, "we meet at nine", user=ANNA)
        telegram.fail("sendDocument", Fault(code=500, description="Internal Server Error"))
        await self.group(ANNA, "make the report", "Done, with one row.", thread=TOPIC)
        await telegram.until(lambda: any(shown.file_name == "report.csv" for shown in telegram.messages(GROUP)), within=20)
        await self.group(BOB, "is this a picture?", "A text of 5 bytes.", file=FileIn("notes.txt", b"notes"))
        root = slack.say("C1", "The build is red", user="U1ANN")
        slack.fail("chat.postMessage", SlackFault(error="ratelimited", retry_after=1))
        await self.channel("U1ANN", "why?", "Anna says", thread=root)

    async def noon(self) -> None:
        """Somebody corrects what they said; somebody else is asked before a command runs; an event comes twice."""
        telegram, slack = self.telegram, self.slack
        await self.group(ANNA, "remember that the meeting is at nine", "Nine it is.")
        asked = max(shown.id for shown in telegram.world.messages[GROUP].values() if not shown.own)
        telegram.edit(GROUP, asked, f"{BOT} remember that the meeting is at ten", user=ANNA)
        await self.group(BOB, "when is it?", "At ten.")
        root = slack.say("C1", "<@U0BOT> clean up", user="U2BOB")
        await slack.until(lambda: any(shown.buttons for shown in slack.messages("C1", thread=root)), within=20)
        question = next(shown for shown in slack.messages("C1", thread=root) if shown.buttons)
        slack.press("C1", question.ts, "Allow once", user="U2BOB")
        await slack.until(lambda: any("Cleaned up" in text for text in slack.texts("C1", thread=root)), within=20)
        slack.redeliver()


@pytest.mark.timeout(90)
async def test_a_day_in_a_group_and_a_channel(tmp_path: Path) -> None:
    """Every question has its one answer, where it was asked, in the order of the asking; whatever happened in between."""
    async with serve_telegram() as telegram, serve_slack() as slack, AnthropicServer(respond=respond) as model:
        telegram.world.topics[GROUP].add(TOPIC)
        configure(tmp_path, telegram, slack, model)
        host, day = Child(tmp_path), Day(telegram, slack)
        await host.start()
        await slack.until(lambda: slack.connections, within=20)
        await day.morning()
        await day.noon()
        telegram.say(GROUP, f"{BOT} think for long", user=ANNA)
        await telegram.until(lambda: telegram.called("sendChatAction", chat=GROUP))
        await until(lambda: any("think for long" in str(each.body["messages"][-1]) for each in model.requests))
        await host.kill()
        await host.start()
        await telegram.until(lambda: "After long thought: yes." in telegram.texts(GROUP), within=30)
        await host.stop()
        telegram.say(GROUP, f"{BOT} are you back?", user=BOB)
        await host.start()
        await telegram.until(lambda: "I am back." in telegram.texts(GROUP), within=20)
        await slack.until(lambda: slack.connections, within=20)
        await day.group(ANNA, "and you?", "Here as well.", thread=TOPIC)
        await day.channel("U1ANN", "still there?", "Still here.")
        await day.channel("U2BOB", "once more", "Once more, then.")
        await host.stop()

    assert telegram_view(telegram) == TELEGRAM_DAY
    assert slack_view(slack) == SLACK_DAY
