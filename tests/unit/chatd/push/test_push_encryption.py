"""Encryption against the example of RFC 8291, and tokens against their verification."""

import os
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from chatd.push.clients.encryption import PLAIN_BYTES_MAX, OneTimeKeys, encrypted, is_point
from chatd.push.clients.vapid import VapidKey
from chatd.push.domain.subscription import PushAddress
from support.net.push_service import Browser, decoded, unpadded, verified_claims

NOW = datetime(2026, 11, 19, tzinfo=UTC)


def private_key(text: str) -> ec.EllipticCurvePrivateKey:
    return ec.derive_private_key(int.from_bytes(decoded(text)), ec.SECP256R1())


def address_of(browser: Browser) -> PushAddress:
    return PushAddress("https://push.example.com/1", browser.public_key, browser.auth)


def test_the_example_of_appendix_a_of_rfc_8291_is_encrypted_to_the_byte() -> None:
    browser = Browser(
        private_key("q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"),
        decoded("BTBZMqHH6r4Tts7J_aSIgg"),
    )
    keys = OneTimeKeys(
        private_key("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"),
        decoded("DGv6ra1nlYgDCS1FRnbzlw"),
    )
    plain = b"When I grow up, I want to be a watermelon"
    body = encrypted(plain, address_of(browser), keys)
    assert unpadded(body) == (
        "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27ml"
        "mlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPT"
        "pK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
    )
    assert browser.decrypt(body) == plain


def test_only_the_browser_decrypts_a_message_of_the_largest_size() -> None:
    browser, plain = Browser(), os.urandom(PLAIN_BYTES_MAX - 1) + b"x"
    keys = OneTimeKeys(ec.generate_private_key(ec.SECP256R1()), os.urandom(16))
    body = encrypted(plain, address_of(browser), keys)
    assert (len(body), browser.decrypt(body)) == (4096, plain)
    with pytest.raises(ValueError, match="at most"):
        encrypted(plain + b"x", address_of(browser), keys)


def test_points_are_checked() -> None:
    point = Browser().public_key
    assert is_point(point)
    assert not any(map(is_point, (b"", point[:-1], point + b"\0", b"\4" + bytes(64))))


def test_a_token_is_for_the_origin_of_the_endpoint_and_signed_by_the_stored_key() -> None:
    key = VapidKey.load(VapidKey.generate().stored())
    assert (len(decoded(key.public_key)), key.public_key.endswith("=")) == (65, False)
    header = key.authorization("https://push.example.com:444/a?b", "mailto:a@example.com", NOW)
    assert verified_claims(header, key.public_key) == {
        "aud": "https://push.example.com:444",
        "exp": int(NOW.timestamp()) + 12 * 3600,
        "sub": "mailto:a@example.com",
    }
    without = verified_claims(
        key.authorization("https://Push.example.com:443/a", "", NOW), key.public_key
    )
    assert (without["aud"], "sub" in without) == ("https://push.example.com", False)
