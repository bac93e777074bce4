"""Debian's chromium, driven through a host that plays."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest

from bot.http.auth import load_or_create_token
from bot.http.server import HttpServer
from tests.browser.playing import PlayingHost

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

T = TypeVar("T")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Page:
    """The browser, and the host that it looks at. Selenium waits in a thread, so that the host goes on."""

    def __init__(self, driver: "Chrome", host: PlayingHost, server: HttpServer) -> None:
        self.driver = driver
        self.host = host
        self.server = server

    async def do(self, work: "Callable[[Chrome], T]") -> T:
        return await asyncio.to_thread(work, self.driver)

    async def open(self, *, width: int = 1280, height: int = 800) -> None:
        link = self.server.login_link()

        def work(driver: "Chrome") -> None:
            metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
            driver.get(link)

        await self.do(work)
        await self.until("return !document.getElementById('app').hidden && !document.querySelector('#log[aria-busy]')")

    async def until(self, script: str) -> None:
        """Wait for a script to return something true."""
        from selenium.webdriver.support.ui import WebDriverWait

        await self.do(lambda driver: WebDriverWait(driver, 10, 0.05).until(lambda d: d.execute_script(script)))

    async def run(self, script: str) -> object:
        return await self.do(lambda driver: driver.execute_script(script))

    async def type(self, text: str) -> None:
        await self.do(lambda driver: driver.find_element("id", "text").send_keys(text))

    async def click(self, selector: str) -> None:
        await self.do(lambda driver: driver.find_element("css selector", selector).click())


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[Chrome]":
    if not (shutil.which("chromium") and shutil.which("chromedriver")):
        pytest.skip("needs Debian's chromium and chromium-driver: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "WARNING"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield chrome
    chrome.quit()


@pytest.fixture
async def page(driver: "Chrome", tmp_path: Path) -> AsyncIterator[Page]:
    host = PlayingHost(tmp_path)
    token = load_or_create_token(tmp_path, None)
    async with HttpServer(host, token=token, data_dir=tmp_path, clock=host.clock, port=0) as server:
        opened = Page(driver, host, server)
        yield opened
        host.hold.set()
        await host.settle()
        await opened.do(lambda chrome: chrome.get("about:blank"))
        logged = driver.execute("getLog", {"type": "browser"})["value"]
    # answers of 4xx and 5xx and lost connections are what some tests are about; a broken policy or script never is
    assert not [entry["message"] for entry in logged if entry["source"] in ("javascript", "security", "console-api")]
