"""Templates: values of parameters, specs, names, and which of them stands out."""

from dataclasses import replace
from datetime import timedelta

import pytest

from chatd.primitives.domain.errors import InvalidRequest
from chatd.workspaces.domain import ranking
from chatd.workspaces.domain.ranking import TemplateUsage, Tier, rank, tier_of
from chatd.workspaces.domain.spec import Kind, Limits, Network, NetworkPolicy, Source, WorkspaceSpec
from chatd.workspaces.domain.templates import (
    Parameter,
    ParameterType,
    Preset,
    Template,
    changed_values,
    check_template,
    chosen_values,
    fitting_name,
    restarted,
    spec_of,
)
from chatd.workspaces.domain.workspace import Lifetime, State
from chatd.workspaces.domain.workspace_text import (
    DETACHED,
    DETACHED_CHILD,
    FORKED_CHILD,
    workspace_description,
)
from support.chatd.workspaces.workspace_values import NOON, template, workspace

GIT = template(
    kind=Kind.GIT,
    source=Source(url="https://example.org/{repo}.git", ref="{ref}"),
    parameters=(
        Parameter("repo", is_required=True, pattern="[a-z]+"),
        Parameter("ref", default_value="main", is_mutable=True),
        Parameter("size", type=ParameterType.CHOICE, options=("s", "m"), default_value="s"),
    ),
    presets=(Preset("p1", "big", parameters={"size": "m"}),),
)


def test_values_are_the_given_ones_then_the_presets_then_defaults() -> None:
    values = chosen_values(GIT, {"repo": "one"}, "p1")
    assert values == {"repo": "one", "ref": "main", "size": "m"}
    spec = spec_of(GIT, values, chat="c7")
    assert spec.source == Source(url="https://example.org/one.git", ref="main", branch="agent/c7")
    assert spec.environment["PARAMETER_REPO"] == "one"


@pytest.mark.parametrize(
    ("given", "preset", "field"),
    [
        ({}, "", "parameters.repo"),
        ({"repo": "ONE"}, "", "parameters.repo"),
        ({"repo": "one", "size": "xl"}, "", "parameters.size"),
        ({"repo": "one", "colour": "red"}, "", "parameters.colour"),
        ({"repo": "one"}, "p9", "preset_id"),
    ],
)
def test_values_that_do_not_fit_are_refused_by_their_name(
    given: dict[str, str], preset: str, field: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        chosen_values(GIT, given, preset)
    assert refused.value.field == field


def test_only_parameters_that_can_be_changed_are_changed_later() -> None:
    present = {"repo": "one", "ref": "main", "size": "s"}
    assert changed_values(GIT, present, {"ref": "next"})["ref"] == "next"
    with pytest.raises(InvalidRequest) as refused:
        changed_values(GIT, present, {"repo": "two"})
    assert refused.value.field == "parameters.repo"


def test_a_template_is_refused_for_all_that_makes_no_sense_at_once() -> None:
    broken = template(
        name="Plain",
        kind=Kind.GIT,
        lifetime=Lifetime(ttl_ms=2, ttl_max_ms=1),
        parameters=(Parameter("A"), Parameter("b"), Parameter("c", pattern="(")),
    )
    with pytest.raises(InvalidRequest) as refused:
        check_template(broken)
    assert [field for field, _ in refused.value.faults] == [
        "template.name",
        "template.git.url",
        "template.ttl_ms",
        "template.parameters[0].name",
        "template.parameters[2].pattern",
    ]


def test_values_are_refused_for_all_that_does_not_fit_at_once() -> None:
    with pytest.raises(InvalidRequest) as refused:
        chosen_values(GIT, {"colour": "red", "size": "huge"})
    assert {field for field, _ in refused.value.faults} >= {"parameters.colour", "parameters.size"}


@pytest.mark.parametrize(
    ("broken", "field"),
    [
        (template(name="Plain"), "template.name"),
        (template(kind=Kind.FORK), "template.kind"),
        (template(kind=Kind.GIT), "template.git.url"),
        (template(kind=Kind.LOCAL), "template.local.directory"),
        (template(lifetime=Lifetime(ttl_ms=2, ttl_max_ms=1)), "template.ttl_ms"),
        (template(parameters=(Parameter("A"),)), "template.parameters[0].name"),
        (template(parameters=(Parameter("a", pattern="("),)), "template.parameters[0].pattern"),
    ],
)
def test_a_template_that_makes_no_sense_is_refused(broken: Template, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        check_template(broken)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("query", "tier"),
    [
        ("Go Service", Tier.EXACT),
        ("go_", Tier.PREFIX),
        ("service", Tier.CONTAINS),
        ("backend", Tier.DESCRIPTION),
        ("rust", Tier.NO_MATCH),
    ],
)
def test_words_fit_a_template_more_or_less(query: str, tier: Tier) -> None:
    assert tier_of(template(name="go-service", description="A backend"), query) is tier


def entry(name: str, usage: TemplateUsage | None = None) -> tuple[Template, TemplateUsage]:
    return template(id=name, name=name), usage or TemplateUsage()


def test_a_template_is_recommended_if_it_is_the_only_one_or_fits_strictly_best() -> None:
    assert rank([entry("go")], "", NOON).recommended_id == "go"
    assert rank([entry("go"), entry("go-web")], "go", NOON).recommended_id == "go"
    several = rank([entry("go-api"), entry("go-web")], "go", NOON)
    assert (several.recommended_id, several.next_step) == ("", ranking.ASK)


def test_a_template_that_somebody_uses_again_and_again_stands_out() -> None:
    used = TemplateUsage(live=1, last_used_at=NOON - timedelta(days=14))
    ranked = rank([entry("a"), entry("b", used)], "", NOON)
    assert [each.template.id for each in ranked.entries] == ["b", "a"]
    assert (ranked.recommended_id, ranked.next_step) == ("b", ranking.USE_RECOMMENDED)
    assert ranked.entries[0].affinity == 5.0
    long_ago = TemplateUsage(live=1, last_used_at=NOON - timedelta(days=61))
    assert rank([entry("a"), entry("b", long_ago)], "", NOON).recommended_id == ""


def test_the_next_step_says_when_there_is_nothing() -> None:
    assert rank([], "x", NOON).next_step == ranking.NONE
    assert rank([entry("go")], "rust", NOON).next_step == ranking.BROADEN_QUERY


def test_a_name_is_kept_if_it_fits_and_made_if_not() -> None:
    assert fitting_name("my-work", "go", "a1b2") == "my-work"
    assert fitting_name("My Work!", "go", "a1b2") == "my-work-a1b2"
    assert fitting_name("", "go", "a1b2") == "go-a1b2"
    assert fitting_name("ü", "go", "a1b2") == "workspace-a1b2"
    assert len(fitting_name("X" * 99, "go", "a1b2")) == 64


def test_a_model_is_told_where_it_works_in_one_of_three_ways() -> None:
    assert workspace_description(None, NOON, is_child=False) == DETACHED
    assert workspace_description(None, NOON, is_child=True) == DETACHED_CHILD
    attached = workspace(
        State.READY, template_name="go", git_branch="agent/c7", root_path="/workspace"
    )
    told = workspace_description(attached, NOON, is_child=False)
    assert told == (
        "This chat has the workspace one (kind scratch, from template go), and its tools work "
        "there: on Linux, in the directory /workspace.\n"
        "The branch agent/c7 is checked out; work on it.\n"
        "Its network access is: none.\n"
        "It stops by itself after 2 hours unless something is done in it; its files are kept then."
    )
    # The same from turn to turn, until the end is near.
    assert workspace_description(attached, NOON + timedelta(minutes=80), is_child=False) == told
    policy = NetworkPolicy(Network.PROXY, ("pypi",), ("git.example.org:443",))
    spec = replace(attached.spec, network=policy, secret_names=("deploy", "api"))
    led = workspace_description(replace(attached, spec=spec), NOON, is_child=False)
    assert (
        "Its network access is: proxy; it reaches preset pypi, git.example.org:443, through a "
        "proxy that programs find by themselves, and nothing else.\n"
        "These secrets are granted to it: deploy, api. They are added outside of it to what git "
        "asks of their hosts, and to requests that other programs send to "
        '"$PARLEY_EGRESS/https/HOST/PATH" instead of https://HOST/PATH; one that is delivered as '
        "a variable is in the environment, under its name in capitals.\n"
    ) in led
    near = workspace_description(attached, NOON + timedelta(minutes=90), is_child=False)
    assert near.endswith("It stops by itself at 14:00 UTC unless something is done in it.")


def test_a_model_is_told_to_start_what_is_stopped_and_a_child_to_report_it() -> None:
    stopped = workspace(State.STOPPED)
    assert workspace_description(stopped, NOON, is_child=False).endswith(
        "It is stopped now. Call start_workspace before you use it."
    )
    assert workspace_description(stopped, NOON, is_child=True).endswith(
        "You cannot start it: report that it is needed."
    )


def test_a_scratch_directory_of_the_chat_is_no_workspace_of_its_own() -> None:
    scratch = replace(workspace(State.READY), is_scratch_of_chat=True)
    assert workspace_description(scratch, NOON, is_child=False) == DETACHED


def test_an_agent_in_a_fork_is_told_that_it_works_in_a_copy() -> None:
    fork = replace(
        workspace(State.READY), is_scratch_of_chat=True, kind=Kind.FORK, parent_id="parent"
    )
    assert workspace_description(fork, NOON, is_child=True) == FORKED_CHILD


def test_a_start_with_other_values_keeps_the_branch_and_the_secrets() -> None:
    present = replace(
        spec_of(GIT, chosen_values(GIT, {"repo": "one"}), chat="c7"), secret_names=("deploy",)
    )
    limited = replace(GIT, limits=Limits(pids=7))
    wanted = spec_of(limited, chosen_values(GIT, {"repo": "one", "ref": "next"}), chat="c8")
    again = restarted(present, wanted)
    assert again == replace(
        present,
        source=replace(present.source, ref="next"),
        environment={**present.environment, "PARAMETER_REF": "next"},
        limits=Limits(pids=7),
    )


def test_a_fork_that_starts_with_other_values_stays_a_copy_of_its_parent() -> None:
    copied = Source(parent_id="parent", parent_epoch=3, fork_mode="copy")
    present = WorkspaceSpec(Kind.FORK, copied, secret_names=("deploy",))
    scripted = replace(GIT, setup_script="make deps")
    again = restarted(present, spec_of(scripted, {"repo": "one", "ref": "x"}, chat="c"))
    assert (again.kind, again.source, again.setup_script) == (Kind.FORK, copied, "")
    assert (again.secret_names, again.environment["PARAMETER_REF"]) == (("deploy",), "x")
