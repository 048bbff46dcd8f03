"""The library of the prebuild tests with a cache that is half full, and a headless Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from prebuild.conftest import built, runtime  # noqa: F401  (fixtures)
from prebuild.lazy_library import Place

CHROMIUM = "/usr/bin/chromium"


@dataclass(frozen=True)
class Reported:
    """A library of which ``d64*`` is compiled for gfx942, and ``d64_fp16`` and ``d128_bf16`` were used."""

    place: Place
    record: Path

    def report(self, output: Path, *words: str | Path) -> str:
        """Run ``report`` for the installed library and return what it prints."""
        done = self.place.run("report", *(words or (self.place.prefix, self.place.cache)), "-o", output)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture(scope="session")
def reported(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Reported:  # noqa: F811
    place = Place(built[0], tmp_path_factory.mktemp("reported"), built[1])
    assert place.prebuild("d64*", "--arch", "gfx942").returncode == 0
    record = place.scratch / "used.txt"
    record.write_text("d64_fp16.cpp\nd128_bf16.cpp\n")
    return Reported(place, record)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; scripts/install_packages.sh browser installs it."""
    with sync_playwright() as playwright:
        # Tests run as root in containers, where the sandbox cannot be had.
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()
