"""Conversion of templates between protos and domain values, with validation of each field."""

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
SKELETON_BYTES_MAX: Final = 256 * 1024
SETUP_MS_MAX: Final = 1_800_000
HOST_CHARACTERS_MAX: Final = 255
EXCERPT_CHARACTERS: Final = 1000

LIFETIME: Final = frozenset({"ttl_ms", "ttl_max_ms", "bump_ms", "retention_ms", "is_ttl_fixed"})
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
    "is_ttl_fixed",
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
    if given.setup_timeout_ms > SETUP_MS_MAX:
        raise InvalidRequest("template.setup_timeout_ms", f"is more than {SETUP_MS_MAX}")
    template = Template(
        id=template_id,
        name=given.name.strip(),
        kind=kind,
        display_name=given.display_name.strip(),
        description=given.description.strip(),
        readme=given.readme,
        source=_source(given, kind),
        parameters=_parameters(given),
        presets=_presets(given, preset_ids),
        setup_script=given.setup_script,
        setup_timeout_ms=given.setup_timeout_ms or 600_000,
        network=network_of(given.network),
        limits=limits_of(given.limits),
        group_ids=groups_of(given),
        is_for_agents=given.enabled_for_agents,
        lifetime=Lifetime(
            ttl_ms=given.ttl_ms,
            ttl_max_ms=given.ttl_max_ms,
            bump_ms=given.bump_ms or 3_600_000,
            retention_ms=given.retention_ms or 604_800_000,
            is_ttl_fixed=given.is_ttl_fixed,
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
    merged, update = template_pb2.Template(), template_pb2.Template()
    merged.CopyFrom(old)
    update.CopyFrom(given)
    for field in template_pb2.Template.DESCRIPTOR.fields:
        kept = merged if field.name in changed else update
        kept.ClearField(field.name)  # type: ignore[arg-type]
    if changed & SOURCES:
        for name in SOURCES - changed:
            merged.ClearField(name)  # type: ignore[arg-type]
    merged.MergeFrom(update)
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
        "is_ttl_fixed": lifetime.is_ttl_fixed,
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


def _source(given: template_pb2.Template, kind: Kind) -> Source:
    named = given.WhichOneof("source")
    if named is not None and named != kind.value:
        raise InvalidRequest(f"template.{named}", f"does not fit the kind {kind}")
    match kind:
        case Kind.GIT:
            return Source(
                url=_url(given.git.url),
                ref=given.git.ref.strip(),
                branch=given.git.branch.strip(),
                depth=given.git.depth,
                is_worktree=given.git.worktree,
            )
        case Kind.LOCAL:
            return Source(directory=given.local.directory.strip(), is_overlay=given.local.overlay)
        case _:
            skeleton = dict(given.scratch.skeleton)
            size = sum(len(path) + len(text) for path, text in skeleton.items())
            if size > SKELETON_BYTES_MAX:
                raise InvalidRequest("template.scratch.skeleton", "holds too much")
            return Source(skeleton=skeleton)


def _url(text: str) -> str:
    url = text.strip()
    _, separator, rest = url.partition("://")
    authority = rest.split("/", 1)[0]
    if separator and ":" in authority.rpartition("@")[0]:
        raise InvalidRequest("template.git.url", "holds a credential; grant a secret instead")
    return url


def _parameters(given: template_pb2.Template) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(
            name=each.name,
            description=each.description.strip(),
            type=TYPES.get(each.type, ParameterType.STRING),
            is_required=each.required,
            default_value=each.default_value,
            options=tuple(each.options),
            pattern=each.pattern.strip(),
            is_mutable=each.mutable,
        )
        for each in given.parameters
    )


def _presets(given: template_pb2.Template, preset_ids: list[str]) -> tuple[Preset, ...]:
    return tuple(
        Preset(
            id=fields.uuid_of(each.preset_id, f"template.presets[{index}].preset_id")
            if each.preset_id
            else preset_ids[index],
            name=_preset_name(each.name, f"template.presets[{index}].name"),
            is_default=each.is_default,
            parameters=dict(each.parameters),
        )
        for index, each in enumerate(given.presets)
    )


def _preset_name(text: str, field: str) -> str:
    if not text.strip():
        raise InvalidRequest(field, "is blank")
    return text.strip()


def groups_of(given: template_pb2.Template) -> tuple[str, ...]:
    """Return the ids of the groups that may use a template.

    Raises:
        InvalidRequest: one is not an id.
    """
    return tuple(
        fields.uuid_of(each, f"template.group_ids[{index}]")
        for index, each in enumerate(given.group_ids)
    )


def network_of(given: sandbox_pb2.NetworkPolicy, at: str = "template.") -> NetworkPolicy:
    """Convert a network policy from its proto.

    Raises:
        InvalidRequest: it has an entry that is not a host, or too long.
    """
    for name in ("presets", "allowed_hosts", "denied_hosts"):
        if any(len(host) > HOST_CHARACTERS_MAX for host in getattr(given, name)):
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


def limits_of(given: sandbox_pb2.ResourceLimits) -> Limits:
    """Convert resource limits from their proto."""
    return Limits(
        given.cpu_millicores,
        given.memory_bytes,
        given.pids,
        given.disk_bytes,
        given.inodes,
        given.output_bytes,
    )


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
