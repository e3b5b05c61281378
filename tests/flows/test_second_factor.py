"""Passkeys and codes in Chromium: set up in the settings, and then what lets somebody in."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import watched
from tests.stack import Stack

pytestmark = pytest.mark.browser

AUTHENTICATOR: Final = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
"""One whose person touches it at once."""

PERSON: Final = """
from quotas.models import User
User.objects.create_user({name!r}, password={password!r})
"""


@dataclass
class Person:
    """Somebody of this test alone: whoever has a second factor no longer signs in as other tests do."""

    name: str
    password: str

    def gives_the_password(self, page: Page) -> None:
        page.goto("/sign-in")
        page.get_by_label("User name").fill(self.name)
        page.get_by_label("Password").fill(self.password)
        page.get_by_role("button", name="Sign in", exact=True).click()

    def is_in(self, page: Page) -> None:
        page.wait_for_url("**/")
        expect(page.get_by_role("button", name=f"Signed in as {self.name}")).to_be_visible()

    def leaves(self, page: Page) -> None:
        page.goto("/settings/sign-in")
        page.get_by_role("button", name=f"Signed in as {self.name}").click()
        page.get_by_role("button", name="Sign out", exact=True).click()
        page.wait_for_url("**/sign-in")

    def shows_who_they_are(self, page: Page) -> None:
        expect(page.get_by_role("heading", name="Confirm your identity")).to_be_visible()
        page.get_by_label("Password").fill(self.password)
        page.get_by_role("button", name="Continue").click()


@pytest.fixture
def person(stack: Stack) -> Person:
    made = Person(f"person-{secrets.token_hex(4)}", secrets.token_urlsafe(12))
    stack.python(PERSON.format(name=made.name, password=made.password))
    return made


@pytest.fixture
def page(browser: Browser, stack: Stack) -> Iterator[Page]:
    """Not signed in, with an authenticator; keys belong to a name, never to an address of IP."""
    context = browser.new_context(locale="en-GB", base_url=f"http://localhost:{stack.port}")
    with watched(context) as opened:
        devtools = context.new_cdp_session(opened)
        devtools.send("WebAuthn.enable")
        devtools.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        yield opened
    context.close()


def test_passkey_is_added_signs_in_and_is_removed(page: Page, person: Person) -> None:
    person.gives_the_password(page)
    person.is_in(page)
    page.goto("/settings/sign-in")
    page.get_by_role("link", name="Add a key").click()
    person.shows_who_they_are(page)
    page.get_by_label("Name").fill("Laptop")
    page.get_by_label("Use as a passkey (sign in without a password)").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    person.leaves(page)

    page.get_by_role("button", name="Sign in with a passkey").click()
    person.is_in(page)
    page.goto("/settings/sign-in")
    page.get_by_role("link", name="Remove Laptop").click()
    person.shows_who_they_are(page)
    page.get_by_role("button", name="Remove").click()
    page.wait_for_url("**/settings/sign-in")
    expect(page.get_by_role("link", name="Remove Laptop")).to_have_count(0)
    person.leaves(page)

    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    expect(page.get_by_role("alert")).to_be_visible()


def test_security_key_is_required_beside_the_password(page: Page, person: Person) -> None:
    person.gives_the_password(page)
    person.is_in(page)
    page.goto("/settings/second-factor/keys/new")
    person.shows_who_they_are(page)
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    person.leaves(page)

    person.gives_the_password(page)
    expect(page.get_by_role("heading", name="Two-factor authentication")).to_be_visible()
    page.get_by_role("button", name="Use a security key or passkey").click()
    person.is_in(page)


def test_authenticator_app_after_set_up_requires_its_codes(page: Page, person: Person) -> None:
    person.gives_the_password(page)
    person.is_in(page)
    page.goto("/settings/sign-in")
    page.get_by_role("link", name="Set up app").click()
    person.shows_who_they_are(page)
    picture = page.get_by_role("img", name="The secret as a QR code")
    assert picture.evaluate("image => image.complete && image.naturalWidth > 0")
    secret = page.locator("[data-copy]").get_attribute("data-copy") or ""
    page.get_by_label("Code from the app").fill(code_of(secret))
    page.get_by_role("button", name="Set up").click()
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    recovery = page.locator(".codes li").first.inner_text()
    person.leaves(page)

    person.gives_the_password(page)
    page.get_by_label("Code").fill("000000")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_text("Incorrect code")).to_be_visible()
    page.get_by_label("Code").fill(code_of(secret, 1))
    page.get_by_role("button", name="Sign in", exact=True).click()
    person.is_in(page)
    person.leaves(page)

    person.gives_the_password(page)
    page.get_by_label("Code").fill(recovery)
    page.get_by_role("button", name="Sign in", exact=True).click()
    person.is_in(page)
    page.goto("/settings/sign-in")
    expect(page.get_by_text("9 left")).to_be_visible()


def code_of(secret: str, steps: int = 0) -> str:
    """RFC 6238, as an app does it; `steps` of 30 seconds from now."""
    counter = struct.pack(">Q", int(time.time()) // 30 + steps)
    digest = hmac.new(base64.b32decode(secret), counter, hashlib.sha1).digest()
    place = digest[-1] & 15
    return f"{(struct.unpack('>I', digest[place : place + 4])[0] & 0x7FFFFFFF) % 1_000_000:06}"
