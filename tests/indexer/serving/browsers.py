"""A server in a thread, and headless Chromium that opens its page and records what goes wrong."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from engine.encoders.encoder import Encoder
from indexer.serving.app import Server, _listener, _url, configuration
from indexer.serving.service import Service
from indexer.serving.settings import ServerSettings
from tests.indexer.serving.clients import until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = 30_000


class _Unsignalled(Server):
    """A server in a thread, where Python allows no signal handlers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def served_page(folder: Path, settings: ServerSettings | None = None, encoder: Encoder | None = None) -> Iterator[str]:
    """The address of a server that is ready."""
    settings = settings or ServerSettings(port=0, threads=1)
    service = Service(folder, settings, encoder)
    listener = _listener(settings)
    server = _Unsignalled(configuration(service, lambda: None))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        until(lambda: service.live.is_ready)
        yield _url(listener) + "/"
    finally:
        server.stop()
        thread.join()


@dataclass
class Seen:
    """What a page did that it must not do."""

    logged: list[str] = field(default_factory=list)  # errors and warnings of the console, and uncaught ones
    outside: list[str] = field(default_factory=list)  # requests to other servers


@contextmanager
def opened_page(
    browser: Browser, base: str, *, width: int = 1440, scheme: str = "light"
) -> Iterator[tuple[Page, Seen]]:
    """A fresh page with a fresh profile; nothing is opened yet."""
    seen = Seen()
    context = browser.new_context(
        base_url=base,
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    page.on("console", lambda one: seen.logged.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda one: seen.logged.append(str(one)))
    page.on("request", lambda one: None if one.url.startswith((base, "blob:")) else seen.outside.append(one.url))
    try:
        yield page, seen
    finally:
        context.close()
