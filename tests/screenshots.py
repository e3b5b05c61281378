"""`make screenshots`: every page, light, dark and on a phone, in three languages, into var/screenshots.

`python -m tests.screenshots [PAGE …]` takes only those of these names; with `--docs`, those that docs/ shows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from playwright.sync_api import Browser, FloatRect, Page

from console.home import CHECKOUT
from tests.browser import chromium
from tests.scenes import MACHINE, fill
from tests.stack import ADMIN, Stack, running

INTO: Final = CHECKOUT / "var" / "screenshots"
LANGUAGES: Final = ("en", "zh-hans", "ja")
LOOKS: Final[Mapping[str, tuple[int, int, Literal["light", "dark"]]]] = {
    "light": (1440, 900, "light"),
    "dark": (1440, 900, "dark"),
    "phone": (390, 844, "light"),
}
SETTLED_MS: Final = 700

DOCS: Final = CHECKOUT / "docs" / "images"
IN_DOCS: Final[Mapping[str, tuple[str, ...]]] = {
    "connect": ("job-connect", "[aria-labelledby=ssh-title]", "[aria-labelledby=keys-title]"),
    "terminal": ("job-terminal",),
    "settings-keys": ("settings", "#ssh-keys"),
}
"""The pictures of docs/images that are taken by `--docs`: of which page, and from where to where on it."""

AS_DELIVERED: Final = {"CONSOLE_SSH_PORT": "2222", "CONSOLE_SSH_HOST": "console.example.com"}


def pages(jobs: Mapping[str, str]) -> dict[str, str]:
    """Each page's name and address."""
    job = {name: f"/jobs/{public_id}/" for name, public_id in jobs.items()}
    return {
        "second-factor-app": "/settings/second-factor/app",  # these two first: they want a fresh password
        "second-factor-key": "/settings/second-factor/keys/new",
        "sign-in-again": "/sign-in/again",
        "sign-in-reset": "/sign-in/reset",
        "sign-in-settings": "/settings/sign-in",
        "sign-in-password": "/settings/password",
        "sign-in-email": "/settings/email",
        "members": "/workspaces/default/members",
        "home": "/",
        "new": "/jobs/new",
        "new-helloworld": "/jobs/new?example=helloworld",
        "new-form": "/jobs/new?view=form",
        "new-file": "/jobs/new?view=file",
        "new-environment": "/jobs/new?view=form&unfold#section-environment",
        "new-resources": "/jobs/new?view=form&unfold#section-resources",
        "new-faults": "/jobs/new?view=form&unfold#section-faults",
        "again": f"/jobs/new?like={jobs['failed']}",
        "jobs": "/jobs/",
        "jobs-none": "/jobs/?q=no-such-job",
        "job-waiting": job["waiting"],
        "job-running": job["running"],
        "job-replicas": job["running"] + "?tab=replicas",
        "job-metrics": job["running"] + "?tab=metrics",
        "job-log": job["running"] + "?tab=logs",
        "job-serving": job["serving"],
        "job-succeeded": job["succeeded"],
        "job-partly": job["partly"],
        "job-failed": job["failed"],
        "job-events": job["failed"] + "?tab=events",
        "job-file": job["failed"] + "?tab=file",
        "job-connect": job["running"] + "?tab=connect",
        "job-terminal": job["running"] + "?tab=terminal",
        "start": "/start/",
        "start-search": "/start/?q=pytorch",
        "start-pytorch": "/start/pytorch-ddp",
        "start-kept": f"/start/{jobs['template']}",
        "templates": "/templates/",
        "template": f"/templates/{jobs['template']}",
        "template-edit": f"/templates/{jobs['template']}/edit",
        "template-new": f"/templates/new?job={jobs['failed']}",
        "new-from-template": f"/jobs/new?template={jobs['template']}",
        "job-history": job["failed"] + "history",
        "start-jupyterlab": "/start/jupyterlab",
        "start-tensorboard": "/start/tensorboard",
        "job-opening": job["waiting"] + "opening?to=jupyterlab",
        "job-files": job["writing"] + "?tab=files",
        "job-files-text": job["writing"] + "?tab=files&path=results%2Fmetrics.csv",
        "job-files-ended": job["succeeded"] + "?tab=files",
        "sweeps": "/sweeps/",
        "sweep": f"/sweeps/{jobs['sweep']}",
        "drafts": "/drafts/",
        "notices": "/notices/",
        "notifications": "/settings/notifications",
        "notifications-new": "/settings/notifications/new/dingtalk",
        "draft-versions": "/drafts/1/versions",
        "assets": "/assets/?kind=datasets",
        "assets-none": "/assets/?kind=vpcs",
        "assets-specs": "/assets/?kind=specs",
        "asset": f"/assets/datasets/{jobs['dataset']}",
        "asset-new": "/assets/datasets/new",
        "nodes": "/nodes/",
        "quotas": "/quotas/",
        "audit": "/audit/",
        "reports": "/reports/",
        "settings": "/settings",
        "not-found": "/nowhere",
        "admin": "/admin/",
        "admin-tree": "/admin/tree/local/",
        "admin-incidents": "/admin/incidents/?open=freeze",
        "admin-jobs": "/admin/jobs/job/",
    }


def photograph(browser: Browser, stack: Stack, wanted: Mapping[str, str]) -> None:
    """Every page of `wanted`, in every look and language, and the sign-in page."""
    for look, (width, height, scheme) in LOOKS.items():
        for language in LANGUAGES:
            folder = INTO / language / look
            folder.mkdir(parents=True, exist_ok=True)
            context = browser.new_context(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                locale=language,
                base_url=stack.base_url,
            )
            page = context.new_page()
            _take(page, "/sign-in", folder / "sign-in.png")
            sign_in(page, stack)
            show_again(page, stack)
            for name, address in wanted.items():
                _take(page, address, folder / f"{name}.png")
            context.close()


def illustrate(browser: Browser, stack: Stack, every: Mapping[str, str]) -> None:
    """The parts of pages that docs/ shows, light and in English."""
    context = browser.new_context(
        viewport={"width": 1200, "height": 800}, color_scheme="light", locale="en", base_url=stack.base_url
    )
    page = context.new_page()
    sign_in(page, stack)
    for name, (of, *parts) in IN_DOCS.items():
        page.goto(every[of])
        page.wait_for_timeout(SETTLED_MS)
        boxes = [box for part in parts if (box := page.locator(part).bounding_box())]
        page.screenshot(path=DOCS / f"{name}.png", full_page=bool(boxes), clip=_around(boxes))
    context.close()


def _around(boxes: Sequence[FloatRect]) -> FloatRect | None:
    """What encloses all of them, if there are any."""
    if not boxes:
        return None
    left, top = min(box["x"] for box in boxes), min(box["y"] for box in boxes)
    right = max(box["x"] + box["width"] for box in boxes)
    bottom = max(box["y"] + box["height"] for box in boxes)
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


def sign_in(page: Page, stack: Stack) -> None:
    """As the admin."""
    page.goto("/sign-in")
    page.fill("#id_username", ADMIN)
    page.fill("#id_password", stack.password)
    page.press("#id_password", "Enter")
    page.wait_for_url("/")


def show_again(page: Page, stack: Stack) -> None:
    """Who one is: for a few minutes, the pages that change how one signs in ask no more."""
    page.goto("/sign-in/again?next=/settings/sign-in")
    page.fill("#id_password", stack.password)
    page.press("#id_password", "Enter")
    page.wait_for_url("/settings/sign-in")


def _take(page: Page, address: str, path: Path) -> None:
    page.goto(address)
    page.wait_for_timeout(SETTLED_MS)
    page.screenshot(path=path)


def main() -> None:
    """Start a console, fill it, photograph it."""
    parser = argparse.ArgumentParser(prog="make screenshots", description=__doc__)
    parser.add_argument("pages", nargs="*", metavar="PAGE")
    parser.add_argument("--docs", action="store_true", help="only the pictures in docs/images")
    options = parser.parse_args()
    asked = options.pages
    began = time.monotonic()
    settings = {**MACHINE, **AS_DELIVERED} if options.docs else MACHINE
    with chromium() as browser, running(settings) as stack:
        every = pages(fill(stack))
        if unknown := set(asked) - set(every):
            parser.error(f"there is no page {', '.join(sorted(unknown))}; there are {', '.join(every)}")
        if options.docs:
            illustrate(browser, stack, every)
            return
        photograph(browser, stack, {name: at for name, at in every.items() if not asked or name in asked})
    print(f"{INTO}: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
