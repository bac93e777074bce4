"""The page, as a person uses it."""

import asyncio
import json
from urllib.parse import urlsplit

import pytest
from selenium.webdriver.common.keys import Keys

from bot.http.auth import load_or_create_token
from bot.http.events import EventHub
from bot.http.host_view import SessionDetail
from bot.http.server import HttpServer
from features.contracts.chat import Address, Button
from features.contracts.events import AgentSettled, AgentStart, ToolExecutionStart
from features.contracts.sessions import SessionHeader, SessionSummary
from tests.browser.conftest import Page

MAIN = Address("web", "main")


def text_in(selector: str, text: str) -> str:
    """A script that tells whether an element's text has ``text`` in it."""
    return f"return [...document.querySelectorAll({json.dumps(selector)})].some((node) => node.textContent.includes({json.dumps(text)}))"


async def test_a_link_opens_the_page_once_and_leaves_no_secret_in_the_history(page: Page) -> None:
    """The link may be seen over a shoulder."""
    link = page.server.login_link()
    await page.do(lambda driver: driver.get(link))
    await page.until("return !document.getElementById('app').hidden")
    assert "login" not in str(await page.run("return location.href"))

    await page.do(lambda driver: driver.delete_all_cookies())
    await page.do(lambda driver: driver.get("about:blank"))
    await page.do(lambda driver: driver.get(link))
    await page.until("return !document.getElementById('login').hidden")
    assert "used or is older" in str(await page.run("return document.getElementById('login-error').textContent"))


async def test_the_token_opens_the_page_and_signing_out_closes_it(page: Page) -> None:
    """For a browser that has no link."""
    await page.do(lambda driver: driver.delete_all_cookies())
    await page.do(lambda driver: driver.get(page.server.url))
    await page.until("return !document.getElementById('login').hidden")
    token = (page.host.folder / "http.token").read_text().strip()
    await page.do(lambda driver: driver.find_element("id", "token").send_keys(token + Keys.ENTER))
    await page.until("return !document.getElementById('app').hidden")
    await page.click("#logout")
    await page.until("return !document.getElementById('login').hidden && document.getElementById('app').hidden")
    await page.do(lambda driver: driver.refresh())
    await page.until("return !document.getElementById('login').hidden")


@pytest.mark.parametrize("width", [1280, 390])
async def test_an_answer_streams_and_ends_as_formatted_text(page: Page, width: int) -> None:
    """Seen while it comes, shown once, nothing of it markup that the model wrote."""
    await page.open(width=width, height=800)
    page.host.hold.clear()
    await page.type("Where are messages stored?")
    await page.click("#send")
    await page.until(text_in(".live .markdown li", "inbox.py"))
    await page.until("return !document.getElementById('stop').hidden")
    page.host.hold.set()
    await page.until(text_in("article[data-id] .markdown", "read the source"))
    await page.until("return document.getElementById('stop').hidden")

    shown = "const all = (s) => document.querySelectorAll(`article[data-id] .markdown ${s}`).length;"
    script = "return [all('li'), all('pre code'), all('td'), all('strong'), all('blockquote'), all('b'), all('a[rel~=noopener]')]"
    assert await page.run(shown + script) == [4, 1, 6, 1, 1, 0, 2]
    assert await page.run("return document.querySelectorAll('.live').length") == 0
    assert await page.run("return document.querySelectorAll('article.mine').length") == 1
    assert await page.run("return document.querySelector('.step summary').textContent") == "grep def accept"
    assert await page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert await page.run("return document.getElementById('announce').textContent.startsWith('Here is what I found')")


async def test_the_stop_button_stops(page: Page) -> None:
    """At once, while the model talks."""
    await page.open()
    page.host.hold.clear()
    await page.type("go on for ever" + Keys.ENTER)
    await page.until("return !document.getElementById('stop').hidden")
    await page.click("#stop")
    await page.until("return document.getElementById('stop').hidden")

    assert [row.text for row in page.host.rows[MAIN] if row.role == "user"] == ["go on for ever", "/stop"]


async def test_commands_are_completed_by_keyboard(page: Page) -> None:
    """And announced as a list to whoever does not see it."""
    await page.open()
    await page.type("/st")
    await page.until("return document.querySelectorAll('#completions:not([hidden]) li').length === 2")
    assert await page.run("return document.getElementById('text').getAttribute('aria-expanded')") == "true"
    await page.type(Keys.ARROW_DOWN + Keys.TAB)
    assert await page.run("return document.getElementById('text').value") == "/stop "
    await page.type(Keys.BACKSPACE * 6 + "/status" + Keys.ENTER)
    await page.until(text_in("article.theirs", "Done: /status"))


async def test_a_messages_buttons_say_their_command(page: Page) -> None:
    """Pressing is typing."""
    await page.open()
    await page.type("/model" + Keys.ENTER)
    await page.until("return document.querySelectorAll('.choice').length === 2")
    await page.click(".choice")
    await page.until(text_in("article.theirs", "Done: /model sonnet"))


async def test_a_question_loses_its_buttons_and_says_how_it_ended(page: Page) -> None:
    """The press itself is not shown as something that was said; nor after the page is opened again."""
    await page.open()
    choices = (Button(label="Allow once", command="/answer q1 1"), Button(label="Deny", command="/answer q1 2"))
    row = page.host.deliver(MAIN, "May I run this?", buttons=(choices,))
    await page.until("return document.querySelectorAll('.choice').length === 2")
    await page.click(".choice")
    await page.until(text_in("article.theirs", "Done: /answer q1 1"))
    page.host.change(MAIN, row, "May I run this?\n\nAnswered: Allow once")
    await page.until(text_in("article.theirs", "Answered: Allow once"))

    assert await page.run("return document.querySelectorAll('.choice, article.mine').length") == 0
    assert await page.run("return document.querySelectorAll('article.theirs').length") == 2
    await page.open()
    await page.until(text_in("article.theirs", "Answered: Allow once"))
    assert await page.run("return document.querySelectorAll('article.mine').length") == 0


async def test_what_goes_on_is_said_in_a_line(page: Page) -> None:
    """With how long it has taken, so that a silent tool is seen to be at work."""
    await page.open()
    page.host.publish(MAIN, AgentStart(), ToolExecutionStart(tool_call_id="1", tool_name="bash", args={"command": "make"}))
    page.host.events.doing(MAIN, "bash make, 2 min")
    await page.until(text_in(".working .label", "bash make, 2 min"))
    page.host.events.doing(MAIN, None)
    await page.until(text_in(".working .label", "Working…"))
    page.host.publish(MAIN, AgentSettled(outcome="success"))
    await page.until("return !document.querySelector('.working')")


async def test_images_and_files_are_attached_and_can_be_taken_back(page: Page) -> None:
    """What was taken back does not go."""
    await page.open()
    for name, content in (("a.png", b"\x89PNG\r\n\x1a\n" + bytes(30)), ("b.txt", b"text"), ("c.txt", b"no")):
        (page.host.folder / name).write_bytes(content)
        await page.do(lambda driver, path=page.host.folder / name: driver.find_element("id", "files").send_keys(str(path)))  # type: ignore[misc]
    await page.until("return document.querySelectorAll('#attachments li').length === 3")
    await page.click("#attachments li:last-child button")
    await page.type("look" + Keys.ENTER)
    await page.until(text_in("article.mine", "look"))
    await page.until("return document.querySelectorAll('#attachments li').length === 0")

    assert [(upload.name, upload.mime_type) for upload in page.host.uploads] == [("a.png", "image/png"), ("b.txt", "text/plain")]


async def test_a_reload_in_the_middle_of_a_run_shows_it_again(page: Page) -> None:
    """With the history before it, each message once."""
    await page.open()
    page.host.hold.clear()
    await page.type("first" + Keys.ENTER)
    await page.until(text_in(".live .markdown", "inbox.py"))
    await page.do(lambda driver: driver.refresh())
    await page.until(text_in(".live .markdown", "inbox.py"))
    await page.until(text_in("article.mine", "first"))
    page.host.hold.set()
    await page.until(text_in("article[data-id] .markdown", "read the source"))

    assert await page.run("return document.querySelectorAll('article').length") == 2


async def test_a_lost_connection_is_said_and_mended_without_losing_a_message(page: Page) -> None:
    """The host is restarted under the open page, on the same port and with the same token."""
    token = load_or_create_token(page.host.folder, None)
    async with HttpServer(page.host, token=token, data_dir=page.host.folder, clock=page.host.clock, port=0) as first:
        page.server = first
        await page.open()
    await page.until("return !document.getElementById('banner').hidden")
    page.host.events = EventHub(page.host.clock)
    page.host.deliver(MAIN, "said while the page was away")
    port = urlsplit(first.url).port or 0
    async with HttpServer(page.host, token=token, data_dir=page.host.folder, clock=page.host.clock, port=port):
        await page.until(text_in("article.theirs", "said while the page was away"))
        await page.until("return document.getElementById('banner').hidden")
        await page.do(lambda driver: driver.get("about:blank"))


async def test_what_cannot_be_sent_stays_in_the_field_with_the_reason(page: Page) -> None:
    """Nothing that was typed is lost."""
    await page.open()

    def fail(*_: object) -> None:
        raise ValueError("a defect")

    page.host.reply = fail
    await page.type("precious words" + Keys.ENTER)
    await page.until("return document.getElementById('composer-error').textContent.includes('went wrong')")

    assert await page.run("return document.getElementById('text').value") == "precious words"


async def test_chats_are_listed_opened_and_made_on_a_phone(page: Page) -> None:
    """The list is a drawer there, and what is in it cannot be reached while it is closed."""
    page.host.deliver(Address("telegram", "5"), "from the phone")
    summary = SessionSummary(
        id="s1", scope="web:main", name="Old talk", created_at=page.host.clock.now(), modified_at=page.host.clock.now(),
        message_count=3, first_message="hi",
    )  # fmt: skip
    header = SessionHeader(version=3, id="s1", timestamp="", cwd="/")
    page.host.kept_sessions["s1"] = SessionDetail(summary=summary, header=header, entries=[], leaf_id=None)
    await page.open(width=390, height=844)
    assert await page.run("return getComputedStyle(document.getElementById('sidebar')).visibility") == "hidden"
    await page.click("#open-sidebar")
    await page.until("return document.getElementById('sidebar').getBoundingClientRect().left === 0")
    await page.until(text_in("#sessions li", "Old talk"))
    await page.until(text_in("#chats li", "telegram:5"))
    await page.do(lambda driver: driver.find_element("xpath", "//*[@id='chats']//span[text()='telegram:5']").click())
    await page.until(text_in("#title", "telegram:5"))
    await page.until(text_in("article.theirs", "from the phone"))
    await page.click("#open-sidebar")
    await page.until("return document.getElementById('sidebar').getBoundingClientRect().left === 0")
    await page.do(lambda driver: driver.find_element("id", "chat-name").send_keys("my plans" + Keys.ENTER))
    await page.until(text_in("#title", "web:my-plans"))


async def test_earlier_messages_come_on_demand(page: Page) -> None:
    """A long chat opens as fast as a short one."""
    for number in range(120):
        page.host.deliver(MAIN, f"number {number}")
    await page.open()
    assert await page.run("return document.querySelectorAll('article').length") == 50
    await page.run("document.getElementById('scroll').scrollTop = 0")
    await page.click("#earlier")
    await page.until("return document.querySelectorAll('article').length === 100")

    script = "return [...document.querySelectorAll('article .body')].map((node) => node.textContent.trim())"
    assert await page.run(script) == [f"number {number}" for number in range(20, 120)]


async def test_whoever_is_at_the_end_stays_there_when_the_window_changes(page: Page) -> None:
    """A phone is turned or its keyboard comes: the browser scrolls to keep its place, and nobody left the newest message."""
    await page.open()
    for number in range(40):
        page.host.deliver(MAIN, f"number {number}")
    await page.until(text_in("article", "number 39"))
    at_end = "const s = document.getElementById('scroll'); return s.scrollHeight - s.clientHeight - s.scrollTop < 2"
    await page.until(at_end)
    await page.run(  # the browser's own scroll comes before observers hear of the size
        "const s = document.getElementById('scroll'); s.style.flex = 'none'; s.style.height = '300px'; s.dispatchEvent(new Event('scroll'))"
    )
    await page.until(at_end)

    assert await page.run("return document.getElementById('latest').hidden")


async def test_everything_can_be_reached_and_has_a_name(page: Page) -> None:
    """For those who see the page otherwise or do not use a pointer."""
    await page.open()
    await page.type("hello" + Keys.ENTER)
    await page.until(text_in("article[data-id] .markdown", "read the source"))
    nameless = await page.run(
        "return [...document.querySelectorAll('button, input:not([type=file]), textarea, a, img')].filter((node) =>"
        " !(node.getAttribute('aria-label') || node.labels?.length || node.textContent.trim() || node.hasAttribute('alt')))"
        ".map((node) => node.outerHTML)"
    )
    assert nameless == []
    await page.run("document.getElementById('text').focus()")
    focused = []
    for _ in range(25):
        await page.do(lambda driver: driver.switch_to.active_element.send_keys(Keys.TAB))
        focused.append(await page.run("return document.activeElement.id || document.activeElement.tagName"))
    assert {"send", "chat-name", "new-session", "logout"} <= set(focused)


WEB = 'target="_blank" rel="noopener noreferrer"'
MARKDOWN = [
    ("a *b* **c** ~~e~~ `f*g*`", "<p>a <em>b</em> <strong>c</strong> <del>e</del> <code>f*g*</code></p>"),
    ("***d***", "<p><em><strong>d</strong></em></p>"),
    ("snake_case_name and 2*3*4 x", "<p>snake_case_name and 2<em>3</em>4 x</p>"),
    ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
    ("[x](javascript:alert(1))", "<p><span>x</span></p>"),
    ("![alt](https://evil.example/p.png)", f'<p><a href="https://evil.example/p.png" {WEB}>🖼 alt</a></p>'),
    ("(see https://a.example/b_(c).)", f'<p>(see <a href="https://a.example/b_(c)" {WEB}>https://a.example/b_(c)</a>.)</p>'),
    ("# One\n## Two ##", "<h3>One</h3><h4>Two</h4>"),
    ("- a\n  - b\n- c", "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"),
    ("3. a\n4. b", '<ol start="3"><li>a</li><li>b</li></ol>'),
    ("- [x] done\n- [ ] open", None),
    ("> a\n> > b", "<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>"),
    ("---", "<hr>"),
    ("**open and `open", "<p>**open and `open</p>"),
    ("\\*not\\* \\[a\\](b)", "<p>*not* [a](b)</p>"),
    ("a  \nb\\\nc\nd", "<p>a<br>b<br>c\nd</p>"),
    ("a | b\n--|--\n1 | `x\\|y`", None),
    ("```js\n<b>**x**</b>", None),
]


async def test_markdown_becomes_elements_and_never_more(page: Page) -> None:
    """What a model writes is text; only what Markdown means becomes an element, links lead to the web alone."""
    await page.open()
    script = """
      const [texts, done] = arguments;
      import("/static/markdown.js").then(({ renderMarkdown, MarkdownStream }) => {
        done(texts.map((text) => {
          const whole = document.createElement("div");
          whole.append(renderMarkdown(text));
          const grown = document.createElement("div");
          const stream = new MarkdownStream(grown);
          for (const character of text) { stream.append(character); stream.draw(); }
          return [new XMLSerializer().serializeToString(whole), whole.innerHTML, grown.innerHTML];
        }));
      });
    """
    found = await page.do(lambda driver: driver.execute_async_script(script, [text for text, _ in MARKDOWN]))
    for (text, expected), (_, whole, grown) in zip(MARKDOWN, found, strict=True):
        assert expected is None or whole == expected, text
        assert grown == whole, f"streamed otherwise than at once: {text!r}"
        assert "<script" not in whole
        assert "<b>" not in whole


async def test_hostile_and_long_markdown_takes_little_time(page: Page) -> None:
    """A model that repeats itself must not freeze the page."""
    await page.open()
    script = """
      const done = arguments[0];
      import("/static/markdown.js").then(({ renderMarkdown, MarkdownStream }) => {
        const began = performance.now();
        for (const piece of ["*a ", "[", "](", "`", "``a", "> ", "- ", "_*", "![", "<", "a|", "\\\\", "1. x\\n", "~~a "]) {
          renderMarkdown(piece.repeat(3000));
        }
        const stream = new MarkdownStream(document.createElement("div"));
        for (let i = 0; i < 2000; i += 1) stream.append(`A line of **text** number ${i} that goes on a little.\\n\\n`);
        stream.draw();
        done(performance.now() - began);
      });
    """
    took = await page.do(lambda driver: driver.execute_async_script(script))

    assert isinstance(took, float | int)
    assert took < 10_000


async def test_nothing_is_loaded_from_elsewhere(page: Page) -> None:
    """No font, no script, no picture of another site."""
    await page.open()
    await page.type("hello" + Keys.ENTER)
    await page.until(text_in("article[data-id] .markdown", "read the source"))
    await asyncio.sleep(0)
    names = await page.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")

    assert isinstance(names, list)
    assert names
    assert all(name.startswith(page.server.url) for name in names)
