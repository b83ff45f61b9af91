"""Conversion of templates between protos and domain values, with validation of each field."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from chatd.primitives.domain.errors import InvalidRequest, all_of
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.times import optional_time
from chatd.workspaces.clients.specs import (
    KINDS,
    NETWORKS,
    level_of,
    level_to_proto,
    limits_to_proto,
    network_to_proto,
)
from chatd.workspaces.domain.ranking import Ranked
from chatd.workspaces.domain.spec import (
    HOST_PATTERN,
    Kind,
    Limits,
    Network,
    NetworkPolicy,
    Source,
)
from chatd.workspaces.domain.templates import (
    Parameter,
    ParameterType,
    Preset,
    Template,
    check_template,
)
from chatd.workspaces.domain.workspace import Lifetime
from parley.api.workspace.v1 import sandbox_pb2, template_pb2

KINDS_OF: Final = {number: kind for kind, number in KINDS.items()}
NETWORKS_OF: Final = {number: access for access, number in NETWORKS.items()}
TYPES: Final = {
    template_pb2.PARAMETER_TYPE_UNSPECIFIED: ParameterType.STRING,
    template_pb2.PARAMETER_TYPE_STRING: ParameterType.STRING,
    template_pb2.PARAMETER_TYPE_NUMBER: ParameterType.NUMBER,
    template_pb2.PARAMETER_TYPE_BOOL: ParameterType.BOOL,
    template_pb2.PARAMETER_TYPE_CHOICE: ParameterType.CHOICE,
}
TYPES_TO_PROTO: Final = {
    kind: template_pb2.ParameterType.Value(f"PARAMETER_TYPE_{kind.name}") for kind in ParameterType
}
SCRIPT_BYTES_MAX: Final = 64 * 1024
SKELETON_FILES_MAX: Final = 64
SKELETON_BYTES_MAX: Final = 256 * 1024
SPAN_MS_MAX: Final = 365 * 24 * 3_600_000
SETUP_MS_MAX: Final = 1_800_000
HOSTS_MAX: Final = 256
PRESETS_MAX: Final = 32
PARAMETERS_MAX: Final = 64
GROUPS_MAX: Final = 100
EXCERPT_CHARACTERS: Final = 1000

LIFETIME: Final = frozenset({"ttl_ms", "ttl_max_ms", "bump_ms", "retention_ms"})
SOURCES: Final = frozenset({"scratch", "git", "local"})
CHANGEABLE: Final = (
    "name",
    "display_name",
    "description",
    "readme",
    "kind",
    "scratch",
    "git",
    "local",
    "parameters",
    "presets",
    "setup_script",
    "setup_timeout_ms",
    "network",
    "limits",
    "group_ids",
    "enabled_for_agents",
    "ttl_ms",
    "ttl_max_ms",
    "bump_ms",
    "retention_ms",
    "sandbox_minimum",
)


def template_of(given: template_pb2.Template, template_id: str, preset_ids: list[str]) -> Template:
    """Convert a template from its proto.

    Args:
        given: The proto.
        template_id: The id of the template.
        preset_ids: Ids for presets that have none.

    Raises:
        InvalidRequest: a field is invalid.
    """
    kind = KINDS_OF.get(given.kind)
    if kind is None:
        raise InvalidRequest("template.kind", "must be given")
    template = Template(
        id=template_id,
        name=fields.words(given.name, "template.name", characters_max=64),
        kind=kind,
        display_name=fields.words(given.display_name, "template.display_name", characters_max=100),
        description=fields.words(given.description, "template.description", characters_max=2000),
        readme=fields.clean(given.readme, "template.readme", bytes_max=SCRIPT_BYTES_MAX),
        source=_source(given, kind),
        parameters=_parameters(given),
        presets=_presets(given, preset_ids),
        setup_script=fields.clean(
            given.setup_script, "template.setup_script", bytes_max=SCRIPT_BYTES_MAX
        ),
        setup_timeout_ms=_span(given.setup_timeout_ms, "setup_timeout_ms", SETUP_MS_MAX) or 600_000,
        network=network_of(given.network),
        limits=limits_of(given.limits),
        group_ids=groups_of(given),
        is_for_agents=given.enabled_for_agents,
        lifetime=Lifetime(
            ttl_ms=_span(given.ttl_ms, "ttl_ms"),
            ttl_max_ms=_span(given.ttl_max_ms, "ttl_max_ms"),
            bump_ms=_span(given.bump_ms, "bump_ms") or 3_600_000,
            retention_ms=_span(given.retention_ms, "retention_ms") or 604_800_000,
        ),
        sandbox_minimum=level_of(given.sandbox_minimum),
    )
    check_template(template)
    return template


def changed_template(old: Template, new: Template, changed: frozenset[str]) -> Template:
    """Return a template with the changed fields taken from another."""
    plain = changed - SOURCES - LIFETIME - {"enabled_for_agents"}
    values: dict[str, object] = {name: getattr(new, name) for name in plain}
    if changed & {*SOURCES, "kind"}:
        values |= {"source": new.source, "kind": new.kind}
    if "enabled_for_agents" in changed:
        values["is_for_agents"] = new.is_for_agents
    lifetime = replace(
        old.lifetime, **{name: getattr(new.lifetime, name) for name in changed & LIFETIME}
    )
    made = replace(old, lifetime=lifetime, **values)  # type: ignore[arg-type]
    check_template(made)
    return made


def merged_template(
    old: template_pb2.Template, given: template_pb2.Template, changed: frozenset[str]
) -> template_pb2.Template:
    """Return a template proto with the changed fields taken from another."""
    merged, news = template_pb2.Template(), template_pb2.Template()
    merged.CopyFrom(old)
    news.CopyFrom(given)
    for field in template_pb2.Template.DESCRIPTOR.fields:
        kept = merged if field.name in changed else news
        kept.ClearField(field.name)  # type: ignore[arg-type]
    if changed & SOURCES:
        for name in SOURCES - changed:
            merged.ClearField(name)  # type: ignore[arg-type]
    merged.MergeFrom(news)
    return merged


def template_to_proto(template: Template) -> template_pb2.Template:
    """Convert a template to its proto."""
    made = template_pb2.Template(
        **_listed_fields(template),
        readme=template.readme,
        parameters=map(_parameter_to_proto, template.parameters),
        presets=map(_preset_to_proto, template.presets),
        setup_script=template.setup_script,
        setup_timeout_ms=template.setup_timeout_ms,
        etag=str(template.version),
    )
    if made.WhichOneof("source") is None:
        skeleton = dict(template.source.skeleton)
        made.scratch.CopyFrom(template_pb2.ScratchSource(skeleton=skeleton))
    return made


def summary_to_proto(entry: Ranked) -> template_pb2.TemplateSummary:
    """Convert a template to its entry in a user's list."""
    return template_pb2.TemplateSummary(
        **_listed_fields(entry.template),
        readme_excerpt=entry.template.readme[:EXCERPT_CHARACTERS],
        active_users=entry.usage.active_users,
        own_workspaces=entry.usage.live,
        last_used_at=optional_time(entry.usage.last_used_at),
    )


def _listed_fields(template: Template) -> dict[str, Any]:
    """Return the fields that a template has in lists too."""
    lifetime = template.lifetime
    return {
        "template_id": template.id,
        "name": template.name,
        "display_name": template.display_name,
        "description": template.description,
        "kind": KINDS[template.kind],
        **_listed_source(template),
        "network": network_to_proto(template.network),
        "limits": limits_to_proto(template.limits),
        "group_ids": template.group_ids,
        "enabled_for_agents": template.is_for_agents,
        "ttl_ms": lifetime.ttl_ms,
        "ttl_max_ms": lifetime.ttl_max_ms,
        "bump_ms": lifetime.bump_ms,
        "retention_ms": lifetime.retention_ms,
        "sandbox_minimum": level_to_proto(template.sandbox_minimum),
    }


def _listed_source(template: Template) -> dict[str, Any]:
    source = template.source
    match template.kind:
        case Kind.GIT:
            git = template_pb2.GitSource(
                url=source.url,
                ref=source.ref,
                branch=source.branch,
                depth=source.depth,
                worktree=source.is_worktree,
            )
            return {"git": git}
        case Kind.LOCAL:
            local = template_pb2.LocalSource(directory=source.directory, overlay=source.is_overlay)
            return {"local": local}
        case _:
            return {}


def values_of(given: Mapping[str, str], field: str = "parameters") -> dict[str, str]:
    """Return parameter values after checking them."""
    if len(given) > PARAMETERS_MAX:
        raise InvalidRequest(field, f"holds more than {PARAMETERS_MAX} values")
    return {
        name: fields.clean(value, f"{field}.{name[:64]}", bytes_max=4096)
        for name, value in given.items()
    }


def _source(given: template_pb2.Template, kind: Kind) -> Source:
    named = given.WhichOneof("source")
    if named is not None and named != kind.value:
        raise InvalidRequest(f"template.{named}", f"does not fit the kind {kind}")
    match kind:
        case Kind.GIT:
            return Source(
                url=_url(given.git.url),
                ref=fields.words(given.git.ref, "template.git.ref", characters_max=255),
                branch=fields.words(given.git.branch, "template.git.branch", characters_max=255),
                depth=fields.whole(given.git.depth, "template.git.depth", at_least=0),
                is_worktree=given.git.worktree,
            )
        case Kind.LOCAL:
            name = fields.words(
                given.local.directory, "template.local.directory", characters_max=64
            )
            return Source(directory=name, is_overlay=given.local.overlay)
        case _:
            skeleton = dict(given.scratch.skeleton)
            size = sum(len(path) + len(text) for path, text in skeleton.items())
            if len(skeleton) > SKELETON_FILES_MAX or size > SKELETON_BYTES_MAX:
                raise InvalidRequest("template.scratch.skeleton", "holds too much")
            return Source(skeleton=skeleton)


def _url(text: str) -> str:
    url = fields.words(text, "template.git.url", characters_max=2000)
    _, separator, rest = url.partition("://")
    authority = rest.split("/", 1)[0]
    if separator and ":" in authority.rpartition("@")[0]:
        raise InvalidRequest("template.git.url", "holds a credential; grant a secret instead")
    return url


def _parameters(given: template_pb2.Template) -> tuple[Parameter, ...]:
    if len(given.parameters) > PARAMETERS_MAX:
        raise InvalidRequest("template.parameters", f"holds more than {PARAMETERS_MAX}")
    return tuple(
        Parameter(
            name=each.name,
            description=fields.words(
                each.description,
                f"template.parameters[{index}].description",
                characters_max=1000,
            ),
            type=TYPES.get(each.type, ParameterType.STRING),
            is_required=each.required,
            default_value=each.default_value,
            options=tuple(each.options[:100]),
            pattern=fields.words(
                each.pattern, f"template.parameters[{index}].pattern", characters_max=500
            ),
            is_mutable=each.mutable,
        )
        for index, each in enumerate(given.parameters)
    )


def _presets(given: template_pb2.Template, preset_ids: list[str]) -> tuple[Preset, ...]:
    if len(given.presets) > PRESETS_MAX:
        raise InvalidRequest("template.presets", f"holds more than {PRESETS_MAX}")
    return tuple(
        Preset(
            id=fields.uuid_of(each.preset_id, f"template.presets[{index}].preset_id")
            if each.preset_id
            else preset_ids[index],
            name=fields.title(each.name, f"template.presets[{index}].name")[:64],
            is_default=each.is_default,
            parameters=values_of(each.parameters, f"template.presets[{index}].parameters"),
        )
        for index, each in enumerate(given.presets)
    )


def groups_of(given: template_pb2.Template) -> tuple[str, ...]:
    """Return the ids of the groups that may use a template.

    Raises:
        InvalidRequest: there are too many, or one is not an id.
    """
    if len(given.group_ids) > GROUPS_MAX:
        raise InvalidRequest("template.group_ids", f"holds more than {GROUPS_MAX}")
    return tuple(
        fields.uuid_of(each, f"template.group_ids[{index}]")
        for index, each in enumerate(given.group_ids)
    )


def network_of(given: sandbox_pb2.NetworkPolicy, at: str = "template.") -> NetworkPolicy:
    """Convert a network policy from its proto.

    Raises:
        InvalidRequest: it has too many entries, or an entry that is not a host.
    """
    for name in ("presets", "allowed_hosts", "denied_hosts"):
        hosts = getattr(given, name)
        if len(hosts) > HOSTS_MAX or any(len(host) > 255 for host in hosts):
            raise InvalidRequest(f"{at}network.{name}", "holds too much")
    all_of(
        partial(_check_host, host, f"{at}network.{name}[{index}]")
        for name in ("allowed_hosts", "denied_hosts")
        for index, host in enumerate(getattr(given, name))
    )
    return NetworkPolicy(
        access=NETWORKS_OF.get(given.access, Network.NONE),
        presets=tuple(given.presets),
        allowed_hosts=tuple(given.allowed_hosts),
        denied_hosts=tuple(given.denied_hosts),
    )


def _check_host(host: str, at: str) -> None:
    if HOST_PATTERN.fullmatch(host) is None:
        raise InvalidRequest(at, "is no host; write HOST, HOST:PORT, *.DOMAIN or tcp://HOST:PORT")


def limits_of(given: sandbox_pb2.ResourceLimits, at: str = "template.") -> Limits:
    """Convert resource limits from their proto.

    Raises:
        InvalidRequest: one is below 0.
    """

    def bound(name: str) -> int:
        return fields.whole(getattr(given, name), f"{at}limits.{name}", at_least=0)

    return Limits(
        bound("cpu_millicores"),
        bound("memory_bytes"),
        bound("pids"),
        bound("disk_bytes"),
        bound("inodes"),
        bound("output_bytes"),
    )


def _span(given_ms: int, name: str, most_ms: int = SPAN_MS_MAX) -> int:
    return fields.whole(given_ms, f"template.{name}", at_least=0, at_most=most_ms)


def _parameter_to_proto(parameter: Parameter) -> template_pb2.TemplateParameter:
    return template_pb2.TemplateParameter(
        name=parameter.name,
        description=parameter.description,
        type=TYPES_TO_PROTO[parameter.type],
        required=parameter.is_required,
        default_value=parameter.default_value,
        options=parameter.options,
        pattern=parameter.pattern,
        mutable=parameter.is_mutable,
    )


def _preset_to_proto(preset: Preset) -> template_pb2.TemplatePreset:
    return template_pb2.TemplatePreset(
        preset_id=preset.id,
        name=preset.name,
        is_default=preset.is_default,
        parameters=dict(preset.parameters),
    )
