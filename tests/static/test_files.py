"""Static files and templates agree with each other, without a browser."""

from __future__ import annotations

import gzip
import hashlib
import posixpath
import re
from pathlib import Path
from typing import Final

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders

ROOT: Final = Path(settings.STATICFILES_DIRS[0])
TEMPLATES: Final = Path(settings.TEMPLATES[0]["DIRS"][0])
IMPORT: Final = re.compile(
    r"""^(?:import [^;]*?|\} )from "(\.[^"]+)";$|^import "(\.[^"]+)";$""", re.MULTILINE
)
STATIC_TAG: Final = re.compile(r"{% static '([^']+)' %}")
EVERY_PAGE_KIB: Final = 250
"""DESIGN section 13: bytes of a page, gzipped, without the editor."""


def imported_by(name: str) -> set[str]:
    """The modules that `name`, a path below static/, needs before it can run, itself among them."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        at = waiting.pop()
        if at in found:
            continue
        found.add(at)
        if not at.startswith("vendor/"):
            text = (ROOT / at).read_text()
            waiting += [
                posixpath.normpath(posixpath.join(posixpath.dirname(at), a or b))
                for a, b in IMPORT.findall(text)
            ]
    return found


def listed_in(template: str) -> set[str]:
    return set(STATIC_TAG.findall((TEMPLATES / template).read_text()))


def test_vendored_files_match_their_checksums() -> None:
    vendor = ROOT / "vendor"
    lines = (vendor / "SHA256SUMS").read_text().splitlines()
    listed = {name: digest for digest, name in (line.split("  ", 1) for line in lines)}
    present = {
        str(path.relative_to(vendor)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in vendor.glob("*/*")
    }
    assert present == listed


def test_vendored_packages_have_licence_and_version() -> None:
    folders = [path for path in (ROOT / "vendor").iterdir() if path.is_dir()]
    assert folders
    for folder in folders:
        assert re.search(r"-\d+\.\d+\.\d+$", folder.name), folder.name
        assert "Permission is hereby granted" in (folder / "LICENSE").read_text()


def test_preloaded_modules_match_the_imported_ones() -> None:
    base = imported_by("console/console.js")
    assert listed_in("console/modules.html") == base - {"console/console.js"}
    assert listed_in("console/modules_log.html") == imported_by("console/logview.js") - base
    merged = imported_by("console/merged-log.js") - base
    assert listed_in("console/modules_merged_log.html") == merged
    assert listed_in("console/modules_editor.html") == imported_by("console/editor.js") - base


def test_templates_name_only_existing_static_files() -> None:
    named = {name for path in TEMPLATES.rglob("*.html") for name in STATIC_TAG.findall(path.read_text())}
    assert {name for name in named if finders.find(name) is None} == set()


def test_icons_used_are_all_in_the_sprite() -> None:
    [sprite] = ROOT.glob("vendor/tabler-icons-*/sprite.svg")
    drawn = set(re.findall(r'<symbol id="([^"]+)"', sprite.read_text()))
    used = set()
    for path in TEMPLATES.rglob("*.html"):
        text = path.read_text()
        used |= set(re.findall(r'components/icon\.html" with name="([^"]+)"', text))
        used |= set(re.findall(r'\b(?:action_)?icon="([^"]+)"', text))
    for path in ROOT.glob("console/*.js"):
        used |= set(re.findall(r'\bicon\("([^"]+)"', path.read_text()))
    assert used - drawn == set()


@pytest.mark.parametrize(
    "path", sorted(TEMPLATES.rglob("*.html")), ids=lambda path: str(path.relative_to(TEMPLATES))
)
def test_templates_contain_nothing_forbidden_by_the_security_policy(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\sstyle\s*=|<style\b|\son[a-z]+\s*=|javascript:", text)
    assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)", text)
    assert "hx-on" not in text


def test_log_page_assets_stay_within_the_size_limit() -> None:
    names = {
        *listed_in("console/document.html"),
        *listed_in("base.html"),
        *imported_by("console/console.js"),
        *imported_by("console/logview.js"),
        "django_htmx/htmx-2.min.js",
        *(str(path.relative_to(ROOT)) for path in ROOT.glob("vendor/tabler-icons-*/sprite.svg")),
    }
    weights = {name: len(gzip.compress(Path(str(finders.find(name))).read_bytes())) for name in names}
    assert sum(weights.values()) <= EVERY_PAGE_KIB * 1024
