"""Templates of workspaces, and how parameter values become a workspace spec."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from typing import Final

import re2

from chatd.primitives.domain.errors import InvalidRequest, all_of
from chatd.workspaces.domain.spec import Kind, Limits, NetworkPolicy, Source, WorkspaceSpec
from chatd.workspaces.domain.workspace import Lifetime

NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
PARAMETER_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")
VALUE_BYTES_MAX: Final = 4096
#: The template that chats use automatically; a migration creates it.
SCRATCH_ID: Final = "00000000-0000-4000-8000-000000000001"
SCRATCH_NAME: Final = "scratch"

_PLACE: Final = re.compile(r"\{([a-z0-9_]{1,64})\}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(?:\.[0-9]{1,30})?")

NAME_CHARACTERS_MAX: Final = 64
_UNFIT: Final = re.compile(r"[^a-z0-9]+")


class ParameterType(StrEnum):
    """The type of a parameter."""

    STRING = "string"
    NUMBER = "number"
    BOOL = "bool"
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value to choose when a workspace is created."""

    name: str
    description: str = ""
    type: ParameterType = ParameterType.STRING
    is_required: bool = False
    default_value: str = ""
    options: tuple[str, ...] = ()
    pattern: str = ""
    is_mutable: bool = False


@dataclass(frozen=True, slots=True)
class Preset:
    """A named set of parameter values."""

    id: str
    name: str
    is_default: bool = False
    parameters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Template:
    """A template of workspaces."""

    id: str
    name: str
    kind: Kind
    display_name: str = ""
    description: str = ""
    readme: str = ""
    source: Source = field(default_factory=Source)
    parameters: tuple[Parameter, ...] = ()
    presets: tuple[Preset, ...] = ()
    setup_script: str = ""
    setup_timeout_ms: int = 600_000
    network: NetworkPolicy = field(default_factory=NetworkPolicy)
    limits: Limits = field(default_factory=Limits)
    group_ids: tuple[str, ...] = ()
    is_for_agents: bool = True
    lifetime: Lifetime = field(default_factory=Lifetime)
    sandbox_minimum: str = ""
    version: int = 1
    created_at: datetime | None = None


def chosen_values(
    template: Template, given: Mapping[str, str], preset_id: str = ""
) -> dict[str, str]:
    """Return the values of all parameters: given ones, then the preset's, then defaults.

    Raises:
        InvalidRequest: a value is missing, unknown or is invalid.
    """
    preset = _preset(template, preset_id)
    known = {parameter.name for parameter in template.parameters}
    values = {
        parameter.name: given.get(
            parameter.name, preset.get(parameter.name, parameter.default_value)
        )
        for parameter in template.parameters
    }
    unknown = (partial(_refuse_unknown, name) for name in sorted(given) if name not in known)
    chosen = (partial(_check_chosen, each, values[each.name]) for each in template.parameters)
    all_of((*unknown, *chosen))
    return values


def _refuse_unknown(name: str) -> None:
    raise InvalidRequest(f"parameters.{name[:64]}", "is no parameter of the template")


def _check_chosen(parameter: Parameter, value: str) -> None:
    if not value and parameter.is_required:
        raise InvalidRequest(f"parameters.{parameter.name}", "must be given")
    if value:
        _check_value(parameter, value)


def changed_values(
    template: Template, present: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """Return the values at a later start; only parameters that can be changed may be given.

    Raises:
        InvalidRequest: one cannot be changed, is unknown, or is invalid.
    """
    fixed = {each.name for each in template.parameters if not each.is_mutable}
    for name, value in given.items():
        if name in fixed and present.get(name) != value:
            raise InvalidRequest(f"parameters.{name[:64]}", "cannot be changed later")
    return chosen_values(template, {**_known(template, present), **given})


def spec_of(template: Template, values: Mapping[str, str], *, chat: str) -> WorkspaceSpec:
    """Return the workspace spec of a template.

    Args:
        template: The template.
        values: The values of all parameters.
        chat: The text that represents the chat in the name of a branch.
    """
    source = template.source
    filled = replace(
        source,
        url=_filled(source.url, values),
        ref=_filled(source.ref, values),
        branch=_filled(source.branch or "agent/{chat}", {**values, "chat": chat})
        if template.kind is Kind.GIT
        else "",
    )
    return WorkspaceSpec(
        kind=template.kind,
        source=filled,
        setup_script=template.setup_script,
        setup_timeout_ms=template.setup_timeout_ms,
        environment={f"PARAMETER_{name.upper()}": value for name, value in values.items()},
        network=template.network,
        limits=template.limits,
        sandbox_minimum=template.sandbox_minimum,
    )


def restarted(present: WorkspaceSpec, wanted: WorkspaceSpec) -> WorkspaceSpec:
    """Return the workspace spec for a restart with other values.

    The current template applies from then on. The branch, the secrets and the parent of a fork are
    kept from the workspace, and a fork does not run the setup of its parent again.
    """
    if present.kind is Kind.FORK:
        wanted = replace(wanted, kind=Kind.FORK, source=present.source, setup_script="")
    return replace(
        wanted,
        source=replace(wanted.source, branch=present.source.branch),
        secret_names=present.secret_names,
        profile=present.profile,
    )


def check_template(template: Template) -> None:
    """Require that a template is valid.

    Raises:
        InvalidRequest: with all faults.
    """
    checks = (_check_name, _check_source, _check_lifetime, _check_parameters, _check_presets)
    all_of(partial(check, template) for check in checks)


def _check_name(template: Template) -> None:
    if NAME.fullmatch(template.name) is None:
        raise InvalidRequest("template.name", "needs 1 to 64 characters of a-z, 0-9 and -")


def _check_source(template: Template) -> None:
    match template.kind:
        case Kind.FORK:
            raise InvalidRequest("template.kind", "forks are made of workspaces, not of templates")
        case Kind.GIT if not template.source.url:
            raise InvalidRequest("template.git.url", "must be given")
        case Kind.LOCAL if not template.source.directory:
            raise InvalidRequest("template.local.directory", "must be given")
        case _:
            pass


def _check_lifetime(template: Template) -> None:
    lifetime = template.lifetime
    if lifetime.ttl_max_ms and lifetime.ttl_ms > lifetime.ttl_max_ms:
        raise InvalidRequest("template.ttl_ms", "is more than ttl_max_ms")


def _check_parameters(template: Template) -> None:
    names = [parameter.name for parameter in template.parameters]
    all_of(
        partial(_check_parameter, parameter, f"template.parameters[{index}]", names)
        for index, parameter in enumerate(template.parameters)
    )


def _check_parameter(parameter: Parameter, at: str, names: list[str]) -> None:
    if PARAMETER_NAME.fullmatch(parameter.name) is None or names.count(parameter.name) > 1:
        raise InvalidRequest(f"{at}.name", "needs 1 to 64 characters of a-z, 0-9, _, once each")
    if parameter.type is ParameterType.CHOICE and not parameter.options:
        raise InvalidRequest(f"{at}.options", "must be given for a choice")
    try:
        re2.compile(parameter.pattern, options=_quiet())
    except re2.error as error:
        raise InvalidRequest(f"{at}.pattern", f"cannot be read: {error}") from None
    if parameter.default_value:
        _check_value(parameter, parameter.default_value, f"{at}.default_value")


def _check_presets(template: Template) -> None:
    names = {parameter.name for parameter in template.parameters}
    for index, preset in enumerate(template.presets):
        unknown = sorted(preset.parameters.keys() - names)
        if unknown:
            at = f"template.presets[{index}].parameters.{unknown[0][:64]}"
            raise InvalidRequest(at, "is no parameter of the template")
    if sum(preset.is_default for preset in template.presets) > 1:
        raise InvalidRequest("template.presets", "has more than one default")


def _check_value(parameter: Parameter, value: str, field: str = "") -> None:
    at = field or f"parameters.{parameter.name}"
    if len(value.encode()) > VALUE_BYTES_MAX or "\0" in value:
        raise InvalidRequest(at, f"is longer than {VALUE_BYTES_MAX} bytes or holds a NUL")
    match parameter.type:
        case ParameterType.NUMBER if _NUMBER.fullmatch(value) is None:
            raise InvalidRequest(at, "is not a number")
        case ParameterType.BOOL if value not in ("true", "false"):
            raise InvalidRequest(at, "is neither true nor false")
        case ParameterType.CHOICE if value not in parameter.options:
            raise InvalidRequest(at, f"is none of {', '.join(parameter.options)}"[:500])
        case _:
            pass
    if parameter.pattern and _matcher(parameter.pattern).fullmatch(value) is None:
        raise InvalidRequest(at, f"does not match {parameter.pattern}")


def _preset(template: Template, preset_id: str) -> Mapping[str, str]:
    if not preset_id:
        return next((each.parameters for each in template.presets if each.is_default), {})
    for preset in template.presets:
        if preset.id == preset_id:
            return preset.parameters
    raise InvalidRequest("preset_id", "is no preset of the template")


def _known(template: Template, values: Mapping[str, str]) -> dict[str, str]:
    names = {parameter.name for parameter in template.parameters}
    return {name: value for name, value in values.items() if name in names}


def _filled(text: str, values: Mapping[str, str]) -> str:
    return _PLACE.sub(lambda found: values.get(found[1], found[0]), text)


def _matcher(pattern: str) -> re2._Regexp:
    # Patterns are untrusted: RE2 takes linear time for any of them.
    return re2.compile(pattern, options=_quiet())


def _quiet() -> re2.Options:
    options = re2.Options()
    options.log_errors = False
    return options


def fitting_name(asked: str, template_name: str, suffix: str) -> str:
    """Return the requested name, or one derived from it; `suffix` makes it unique."""
    if NAME.fullmatch(asked) is not None:
        return asked
    return made_name(asked or template_name, suffix)


def made_name(like: str, suffix: str) -> str:
    """Return a valid name derived from a text, with the suffix."""
    slug = _UNFIT.sub("-", like.casefold()).strip("-") or "workspace"
    return f"{slug[: NAME_CHARACTERS_MAX - len(suffix) - 1].rstrip('-')}-{suffix}"
