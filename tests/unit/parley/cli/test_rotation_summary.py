from datetime import UTC, datetime

from parley.cli.keys.plan import Rotation, Stage
from parley.cli.keys.rotation import Overlap, summary_of

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
ISSUE = "parley token issue"


def lines(overlap: Overlap, **fields: object) -> tuple[str, str]:
    rotation = Rotation(stage=Stage.USED, changed_at=AT, **fields)  # type: ignore[arg-type]
    return summary_of(rotation, overlap, master_key_id="k2", issue=ISSUE)


def test_a_rotation_ends_with_what_was_replaced_and_how_long_old_service_tokens_are_good() -> None:
    kids = {"gateway": "a", "chatd": "b"}
    week = Overlap(every_key_s=120, service_tokens_s=7 * 86_400, wait_s=1)
    assert lines(week, master_key_ids=("k1",), signing_key_ids=kids, authority="ca") == (
        "Replaced the master key (now k2), the signing keys of chatd, gateway, "
        "the certificate authority.",
        "The old keys are refused, except for service tokens until 2026-01-09 03:04 UTC: "
        "issue new ones with `parley token issue`.",
    )


def test_without_an_overlap_for_service_tokens_all_old_keys_are_refused() -> None:
    at_once = Overlap(every_key_s=120, service_tokens_s=0, wait_s=1)
    assert lines(at_once, signing_key_ids={"gateway": "a"}) == (
        "Replaced the signing keys of gateway.",
        "The old keys are refused.",
    )
    assert lines(at_once)[0] == "There was no key to replace."
