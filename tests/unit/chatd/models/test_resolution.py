from dataclasses import replace
from decimal import Decimal

import pytest

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import Catalogue, Model, ModelOverride, Provider, Purpose, merged
from chatd.models.domain.language_model import ModelError
from chatd.models.domain.preferences import InstallationSettings, UserSettings
from chatd.models.domain.price import Price
from chatd.models.domain.profile import NO_CHOICE, ModelChoice, ModelProfile, ReasoningEffort
from chatd.models.domain.resolution import (
    Resolved,
    clamped,
    for_purpose,
    price_of,
    profile_of,
    resolve,
    turn_choice,
)
from support.chatd.models.model_catalogue import (
    ANTHROPIC,
    BOOK,
    LLAMA,
    LOCAL,
    OPUS,
    SONNET,
    SONNET_PRICE,
    allowing_own_keys,
    catalogue,
)

NONE, LOW, MEDIUM, HIGH, MAX = (
    ReasoningEffort.NONE,
    ReasoningEffort.LOW,
    ReasoningEffort.MEDIUM,
    ReasoningEffort.HIGH,
    ReasoningEffort.MAX,
)
UNSET = ReasoningEffort.DEFAULT


@pytest.mark.parametrize(
    ("wanted", "changed", "expected"),
    [
        ("", (), "sonnet"),
        ("opus", (), "opus"),
        ("llama", (), "llama"),
        ("", (replace(SONNET, is_default=False), replace(OPUS, is_default=True)), "opus"),
        ("", (replace(SONNET, is_default=False), replace(LLAMA, is_given=True)), "llama"),
    ],
)
def test_a_turn_runs_with_the_model_that_was_chosen_or_else_the_default(
    wanted: str, changed: tuple[Provider | Model, ...], expected: str
) -> None:
    assert resolve(catalogue(*changed), ModelChoice(wanted), BOOK).model.id == expected


@pytest.mark.parametrize(
    ("wanted", "changed", "kind", "advice"),
    [
        ("never heard of", (), ErrorKind.MODEL_UNAVAILABLE, "The model never heard of is not"),
        (
            "opus",
            (replace(OPUS, is_deleted=True),),
            ErrorKind.MODEL_UNAVAILABLE,
            f"The model {OPUS.display_name} was removed; choose another",
        ),
        ("opus", (replace(OPUS, is_enabled=False),), ErrorKind.MODEL_UNAVAILABLE, "choose another"),
        ("", (replace(SONNET, is_enabled=False),), ErrorKind.MODEL_UNAVAILABLE, "choose another"),
        ("", (replace(SONNET, is_default=False),), ErrorKind.CONFIG, "make one the default"),
        (
            "opus",
            (replace(ANTHROPIC, is_enabled=False),),
            ErrorKind.PROVIDER_DISABLED,
            "another provider",
        ),
        ("opus", (replace(ANTHROPIC, keys=()),), ErrorKind.MISSING_KEY, "ask an administrator"),
        (
            "opus",
            (allowing_own_keys(replace(ANTHROPIC, keys=())),),
            ErrorKind.MISSING_KEY,
            "add a key of your own",
        ),
        (
            "opus",
            (replace(ANTHROPIC, is_deleted=True),),
            ErrorKind.MODEL_UNAVAILABLE,
            "choose another",
        ),
    ],
)
def test_a_model_that_cannot_be_used_says_what_to_do(
    wanted: str, changed: tuple[Provider | Model, ...], kind: ErrorKind, advice: str
) -> None:
    with pytest.raises(ModelError) as refused:
        resolve(catalogue(*changed), ModelChoice(wanted), BOOK)
    assert (refused.value.kind, refused.value.is_retryable) == (kind, False)
    assert advice in refused.value.message


def test_without_any_model_the_error_is_for_the_administrator() -> None:
    with pytest.raises(ModelError) as refused:
        resolve(Catalogue(), NO_CHOICE, BOOK)
    assert refused.value.kind is ErrorKind.CONFIG


def test_a_key_of_ones_own_is_enough_where_it_is_allowed() -> None:
    keyless = allowing_own_keys(replace(ANTHROPIC, keys=()))
    found = resolve(catalogue(keyless), ModelChoice("opus"), BOOK, {"anthropic"})
    assert found.provider == keyless
    with pytest.raises(ModelError):
        resolve(
            catalogue(replace(keyless, user_keys_allowed=False)),
            ModelChoice("opus"),
            BOOK,
            {"anthropic"},
        )


def test_an_endpoint_of_ones_own_needs_no_key() -> None:
    assert resolve(catalogue(), ModelChoice("llama"), BOOK).provider == LOCAL


@pytest.mark.parametrize(
    ("wanted", "default", "highest", "expected"),
    [
        (UNSET, UNSET, HIGH, UNSET),
        (UNSET, LOW, HIGH, LOW),
        (MEDIUM, LOW, HIGH, MEDIUM),
        (MAX, LOW, HIGH, HIGH),
        (UNSET, MAX, MEDIUM, MEDIUM),
        (NONE, HIGH, HIGH, NONE),
        (HIGH, HIGH, NONE, NONE),
        (HIGH, HIGH, UNSET, UNSET),
        (UNSET, HIGH, UNSET, UNSET),
    ],
)
def test_effort_is_clamped_and_dropped_where_nobody_knows_it(
    wanted: ReasoningEffort,
    default: ReasoningEffort,
    highest: ReasoningEffort,
    expected: ReasoningEffort,
) -> None:
    model = replace(LLAMA, default_effort=default, max_effort=highest)
    assert clamped(wanted, model) is expected


def test_the_book_says_how_hard_a_model_can_think_unless_somebody_else_did() -> None:
    entry = BOOK.find(SONNET.name)
    assert clamped(MAX, SONNET, entry) is HIGH
    assert clamped(MAX, replace(SONNET, max_effort=LOW), entry) is LOW


def test_a_profile_takes_from_the_book_what_nobody_set() -> None:
    found = resolve(catalogue(), ModelChoice("sonnet", LOW), BOOK)
    assert profile_of(found, BOOK) == ModelProfile(
        id="sonnet",
        context_limit_tokens=200_000,
        price=SONNET_PRICE,
        output_tokens_max=32_000,
        reasoning_effort="low",
        provider="anthropic",
        provider_id="anthropic",
        name="claude-sonnet-9",
    )


def test_a_profile_prefers_what_an_administrator_set() -> None:
    model = replace(
        SONNET,
        context_limit_tokens=1000,
        output_limit_tokens=50,
        price=Price(input=Decimal(0), output=Decimal(7)),
    )
    profile = profile_of(Resolved(model, ANTHROPIC, UNSET), BOOK)
    assert (profile.context_limit_tokens, profile.output_tokens_max) == (1000, 50)
    assert profile.price == Price(Decimal(0), Decimal(7), Decimal("0.3"), Decimal("3.75"))


def test_a_model_nobody_knows_has_no_price_and_the_usual_cap() -> None:
    profile = profile_of(Resolved(LLAMA, LOCAL, UNSET), BOOK)
    assert (profile.price, profile.context_limit_tokens, profile.output_tokens_max) == (
        None,
        0,
        32_000,
    )
    assert price_of(replace(LLAMA, price=Price(input=Decimal(0))), None) == Price(input=Decimal(0))


@pytest.mark.parametrize(
    ("override", "changed", "expected"),
    [
        (ModelOverride(Purpose.COMPACTION, "llama"), (), "llama"),
        (ModelOverride(Purpose.COMPACTION, "gone"), (), None),
        (ModelOverride(Purpose.COMPACTION, "llama"), (replace(LLAMA, is_enabled=False),), None),
        (ModelOverride(Purpose.COMPACTION, "llama"), (replace(LLAMA, is_deleted=True),), None),
        (ModelOverride(Purpose.COMPACTION, "opus"), (replace(ANTHROPIC, keys=()),), None),
        (ModelOverride(Purpose.TITLE, "llama"), (), None),
    ],
)
def test_a_purpose_has_a_model_of_its_own_only_if_that_can_be_used(
    override: ModelOverride, changed: tuple[Provider | Model, ...], expected: str | None
) -> None:
    known = replace(catalogue(*changed), overrides={override.purpose: override})
    found = for_purpose(known, (Purpose.COMPACTION,), BOOK)
    assert (None if found is None else found.model.id) == expected


def test_a_message_chooses_before_its_chat() -> None:
    chat = ModelChoice("chats", HIGH)
    assert turn_choice(None, chat) == chat
    assert turn_choice(NO_CHOICE, chat) == chat
    assert turn_choice(ModelChoice("own"), chat) == ModelChoice("own", HIGH)
    assert turn_choice(ModelChoice("", LOW), chat) == ModelChoice("chats", LOW)


def test_a_model_is_found_by_id_or_by_a_name_that_is_not_ambiguous() -> None:
    twin = replace(LLAMA, id="twin", provider_id="anthropic")
    known = catalogue(twin)
    assert known.find("llama") == LLAMA
    assert known.find("claude-opus-9") == OPUS
    assert known.find("llama-9") is None
    assert known.find("local/llama-9") == LLAMA
    assert known.find("nothing") is None
    assert catalogue(replace(OPUS, is_enabled=False)).find("opus") is None


def test_an_administrators_default_wins_over_the_environments() -> None:
    given = Catalogue(
        {LOCAL.id: LOCAL}, {LLAMA.id: replace(LLAMA, is_given=True)}, given_default_id="llama"
    )
    stored = catalogue(replace(SONNET, is_default=False))
    assert merged(stored, given).default() == replace(LLAMA, is_given=True)
    assert merged(catalogue(), given).default() == SONNET


@pytest.mark.parametrize(
    ("own", "configured", "expected"),
    [({}, 80, 80), ({"m": 40}, 80, 40), ({"m": 100}, 80, 100), ({"m": 101}, 80, 70), ({}, -1, 70)],
)
def test_a_users_threshold_wins_and_an_impossible_one_is_the_usual(
    own: dict[str, int], configured: int, expected: int
) -> None:
    assert UserSettings("", own).threshold_percent("m", configured) == expected


def test_the_house_speaks_until_an_administrator_does() -> None:
    assert InstallationSettings().has_default_prompt
    assert not InstallationSettings(system_prompt="ours").has_default_prompt
    assert InstallationSettings("ours", include_default_system_prompt=True).has_default_prompt
    assert not InstallationSettings(include_default_system_prompt=False).has_default_prompt
