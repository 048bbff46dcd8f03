"""The page in headless Chromium: what it shows, the keyboard, accessibility (axe-core), and its size."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from ck_post_build.report_data import Kernel, ReportData
from ck_post_build.report_page import render

from .conftest import Reported

Open = Callable[..., Page]


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[Open]:
    """A function that opens a file and waits until it is drawn; at the end, nothing else was loaded and no error met."""
    seen: list[str] = []
    contexts = []

    def open_file(file: Path, width: int = 1300, scheme: Any = "light") -> Page:
        context = chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10000)
        page.on("request", lambda request: seen.append(request.url))
        page.on("pageerror", lambda error: seen.append(f"error: {error}"))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]", timeout=20000)
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert [url for url in seen if not url.startswith(("file:", "data:", "blob:"))] == []


@pytest.fixture(scope="module")
def file(reported: Reported, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("page") / "report.html"
    reported.report(output, reported.place.prefix, reported.place.cache, "--used", reported.record)
    return output


def cell(page: Page) -> tuple[str | None, str | None]:
    """Return row and column of the focused cell."""
    focused = page.locator("td:focus")
    return focused.get_attribute("data-row"), focused.get_attribute("data-column")


def test_the_summary_and_the_states(file: Path, open_page: Open) -> None:
    page = open_page(file)
    assert page.inner_text("#summary") == (
        "11 of 11 kernels shown: 1 used, compiled; 3 used, not compiled; 2 compiled, not used; 5 reachable, not compiled."
    )
    states = page.locator("#states label")
    assert [text.split()[0] for text in states.all_inner_texts()] == ["used,", "used,", "compiled,", "reachable,"]
    states.nth(3).locator("input").uncheck()
    page.get_by_label("used, not compiled").uncheck()
    assert page.inner_text("#summary").startswith("3 of 11 kernels shown")
    headers = [text.strip() for text in page.locator("#grid tbody th").all_inner_texts()]
    assert headers == ["hdim 64"]


def test_the_search(file: Path, open_page: Open) -> None:
    page = open_page(file)
    for text, count in [("hdim=64 mask=true", 2), ("d128 gpu=gfx950", 3), ("dtype=BF16", 5), ("none", 0)]:
        page.fill("#search", text)
        expect(page.locator("#summary")).to_have_text(re.compile(f"^{count} of 11"))
    page.fill("#search", "hdimm=64")
    expect(page.locator("#summary")).to_have_text(re.compile("^No trait is called hdimm. There are: direction"))


def test_the_keyboard_alone_will_do(file: Path, open_page: Open) -> None:
    page = open_page(file)
    page.focus("#grid td[tabindex='0']")
    for key, expected in [
        ("ArrowDown", ("1", "0")),
        ("End", ("1", "3")),
        ("ArrowRight", ("1", "3")),
        ("ArrowUp", ("0", "3")),
        ("Home", ("0", "0")),
        ("Control+End", ("1", "3")),
        ("Control+Home", ("0", "0")),
        ("ArrowRight", ("0", "1")),
    ]:
        page.keyboard.press(key)
        assert cell(page) == expected, key
    assert page.locator("#grid td[tabindex='0']").count() == 1
    page.keyboard.press("Enter")
    assert page.locator("#detail-title:focus").inner_text() == "2 kernels: hdim 64, gpu gfx942, dtype fp16"
    rows = [" ".join(text.split()) for text in page.locator("#list tbody tr").all_inner_texts()]
    assert len(rows) == 2 and rows[0].startswith("used") and rows[0].endswith("d64_fp16.cpp")
    page.keyboard.press("Escape")
    assert page.locator("#detail").is_hidden()
    assert cell(page) == ("0", "1")
    page.keyboard.press("/")
    assert page.locator("#search:focus").count() == 1


def test_axes_and_shading_can_be_chosen(file: Path, open_page: Open) -> None:
    page = open_page(file)
    for selector, value in [
        ("#row1", "mask"),
        ("#row2", ""),
        ("#column1", "arch"),
        ("#column2", ""),
        ("#shade", "size"),
    ]:
        page.select_option(selector, value)
    assert [text.strip() for text in page.locator("#grid thead th").all_inner_texts()] == ["arch gfx9", "arch gfx950"]
    assert [text.strip() for text in page.locator("#grid tbody th").all_inner_texts()] == ["mask false", "mask true"]
    assert page.locator("#shades span").count() == 5


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 380])
def test_axe_finds_nothing(file: Path, open_page: Open, scheme: str, width: int) -> None:
    page = open_page(file, width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.focus("#grid td[tabindex='0']")
    page.keyboard.press("Enter")
    page.select_option("#shade", "seconds")
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_twenty_thousand_blobs_stay_small_and_quick(tmp_path: Path, open_page: Open) -> None:
    names = [f"fmha_bwd_d{64 + number % 5 * 32}_instance_{number:05}.cpp" for number in range(20800)]
    traits = {
        name: {
            "direction": frozenset(["bwd"]),
            "hdim": frozenset([64 + number % 5 * 32]),
            "n0": frozenset([number % 7]),
        }
        for number, name in enumerate(names)
    }
    kernels = [
        Kernel("libmha_bwd.so", name, arch, 100000 + 37 * number % 4096 if number % 3 else None, None)
        for number, name in enumerate(names)
        for arch in ("gfx942", "gfx950")
    ]
    page_file = tmp_path / "large.html"
    page_file.write_bytes(render(ReportData({"libmha_bwd.so": None}, traits, kernels, None, frozenset()), "Large"))
    assert page_file.stat().st_size < 1_000_000
    started = time.monotonic()
    page = open_page(page_file)
    assert time.monotonic() - started < 5  # about 1 s on an idle machine
    assert page.inner_text("#summary").startswith("41,600 of 41,600 kernels shown")
    page.click("#grid td[data-row='0'][data-column='0']")
    assert page.locator("#list tbody tr").count() == 200
    page.click("#more")
    assert page.locator("#list tbody tr").count() == 400
