"""Names that models call tools by."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from mcpgateway.client.tool_names import model_names

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}")
SLUGS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", fullmatch=True)
PLAIN = st.text("abAB_-", min_size=1, max_size=6)
TOOLS = st.sets(PLAIN | st.text(min_size=1, max_size=128), max_size=20)


def test_a_plain_name_is_slug_and_tool() -> None:
    assert model_names("github", "id", ["create_issue"]) == {"create_issue": "github__create_issue"}


def test_replaced_characters_bring_a_suffix() -> None:
    names = model_names("github", "id", ["create.issue"])

    assert names == {"create.issue": "github__create_issue_256g5n2a"}


def test_a_long_name_is_cut_to_exactly_64_characters() -> None:
    (name,) = model_names("github", "id", ["x" * 120]).values()

    assert (len(name), name[:55]) == (64, ("github__" + "x" * 120)[:55])


def test_both_sides_of_a_collision_get_a_suffix() -> None:
    names = model_names("s", "id", ["Get", "get"])

    assert len(set(names.values())) == 2
    assert all(re.fullmatch(r"s__[Gg]et_[a-z2-7]{8}", name) for name in names.values())


def test_a_plain_name_that_looks_like_a_suffixed_one_gives_way() -> None:
    (suffixed,) = model_names("s", "id", ["a.b"]).values()
    impostor = suffixed.removeprefix("s__")

    names = model_names("s", "id", ["a.b", impostor])

    assert names["a.b"] == suffixed
    assert names[impostor].startswith(f"{suffixed}_")


@given(SLUGS, TOOLS)
@example("s", {"a.b", "a_b", "a b", "A_b"})
def test_names_are_valid_and_unique_whatever_the_case(slug: str, tools: set[str]) -> None:
    names = model_names(slug, "id", tools)

    assert set(names) == tools
    assert all(VALID.fullmatch(name) and name.startswith(f"{slug}__") for name in names.values())
    assert len({name.lower() for name in names.values()}) == len(tools)


@given(SLUGS, TOOLS, st.randoms(use_true_random=False))
def test_names_do_not_depend_on_the_order_of_the_listing(
    slug: str, tools: set[str], chance: object
) -> None:
    shuffled = list(tools)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]

    assert model_names(slug, "id", shuffled) == model_names(slug, "id", sorted(tools))


@given(st.sets(SLUGS, min_size=2, max_size=4), TOOLS)
def test_tools_of_different_servers_never_share_a_name(slugs: set[str], tools: set[str]) -> None:
    names = [name for slug in slugs for name in model_names(slug, slug, tools).values()]

    assert len({name.lower() for name in names}) == len(names)
