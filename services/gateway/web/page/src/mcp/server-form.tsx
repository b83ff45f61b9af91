/** The settings of an MCP server: a new one, or changes of the version that was read. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { groups, users } from "../admin/queries.ts";
import { answered, api } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { AreaField, CheckField, SelectField, TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Button } from "../ui/button.tsx";
import { complain } from "../ui/toasts.tsx";
import { needsCredentials } from "./origins.ts";
import { type Probe, ProbeResult } from "./probe.tsx";
import type { Server } from "./selection.ts";
import { refreshServers } from "./servers.ts";
import { linesOf, pairsOf } from "./text-lists.ts";

type Body = components["schemas"]["CreateServerBody"] & components["schemas"]["UpdateServerBody"];

const AVAILABILITIES = [["default_off", "Chats that choose it"], ["default_on", "Chats that chose no servers"], ["force_on", "Every chat"]] as const;
const APPROVALS = [["destructive", "Unless a trusted server calls a tool harmless"], ["always", "Always"], ["never", "Never"]] as const;
const TRANSPORTS = [["streamable_http", "Streamable HTTP"], ["sse", "HTTP with SSE (older servers)"]] as const;
const KINDS = [["none", "Nothing"], ["oauth2", "A login of each user"], ["api_key", "One key for everyone"], ["custom_headers", "Headers for everyone"]] as const;
const FLAGS = [
  ["is_enabled", "Enabled"],
  ["is_trusted", "Believe its hints about effects"],
  ["is_required", "Turns fail without it"],
  ["allow_in_plan_mode", "Chats that plan may use it"],
  ["is_stateful", "A session of its own for each chat"],
] as const;

/** What the fields of the form hold. */
function valuesOf(server: Server | undefined) {
  return {
    slug: server?.slug ?? "",
    display_name: server?.display_name ?? "",
    description: server?.description ?? "",
    url: server?.url ?? "",
    transport: server?.transport ?? ("streamable_http" as const),
    auth_kind: server?.auth_kind ?? ("none" as const),
    availability: server?.availability ?? ("default_off" as const),
    approval_policy: server?.approval_policy ?? ("destructive" as const),
    is_enabled: server?.is_enabled ?? false,
    is_trusted: server?.is_trusted ?? false,
    is_required: server?.is_required ?? false,
    allow_in_plan_mode: server?.allow_in_plan_mode ?? false,
    is_stateful: server?.is_stateful ?? false,
    allow: (server?.tool_allow_list ?? []).join("\n"),
    deny: (server?.tool_deny_list ?? []).join("\n"),
    slots: (server?.user_values ?? []).map((each) => `${each.header}: ${each.description}`).join("\n"),
    user_ids: server?.user_ids ?? [],
    group_ids: server?.group_ids ?? [],
    client_id: server?.oauth?.client_id ?? "",
    secret: "",
    header: server?.api_key_header ?? "",
  };
}

type Values = ReturnType<typeof valuesOf>;

/** Return what is sent; a secret that was not typed stays as it is stored. */
function bodyOf(values: Values, server: Server | undefined): Body {
  const { allow, deny, slots, client_id, secret, header, ...settings } = values;
  const body: Body = {
    ...settings,
    tool_allow_list: linesOf(allow),
    tool_deny_list: linesOf(deny),
    user_values: pairsOf(slots).map(([name, description]) => ({ header: name, description })),
  };
  if (values.auth_kind === "oauth2" && (client_id || server?.oauth)) body.oauth = { ...server?.oauth, client_id };
  if (values.auth_kind === "api_key") body.api_key_header = header;
  if (!secret) return body;
  if (values.auth_kind === "oauth2") body.credentials = { oauth_client_secret: secret };
  if (values.auth_kind === "api_key") body.credentials = { api_key: secret };
  if (values.auth_kind === "custom_headers") body.credentials = { custom_headers: { headers: Object.fromEntries(pairsOf(secret)) } };
  return body;
}

interface Props {
  server?: Server | undefined;
  onDone: () => void;
}

export function ServerForm({ server, onDone }: Props) {
  const [values, setValues] = useState(() => valuesOf(server));
  const [probe, setProbe] = useState<Probe | "running">();
  const saving = useSaving();
  const set = (change: Partial<Values>): void => setValues({ ...values, ...change });

  async function save(): Promise<void> {
    const body = bodyOf(values, server);
    if (server) {
      const params = { path: { server_id: server.id }, header: { "If-Match": `"${server.version}"` } };
      await answered(api.PATCH("/api/v1/mcp/servers/{server_id}", { params, body }));
    } else await answered(api.POST("/api/v1/mcp/servers", { body }));
    await refreshServers();
    onDone();
  }

  async function ask(): Promise<void> {
    setProbe("running");
    try {
      setProbe(await answered(api.POST("/api/v1/mcp/probe", { body: bodyOf(values, server) })));
    } catch (error) {
      setProbe(undefined);
      complain(error);
    }
  }

  return (
    <Form
      saving={saving}
      label={server ? "Save" : "Add the server"}
      disabled={!values.slug.trim() || !values.url.trim()}
      onSubmit={() => void saving.save(save, server ? "The server is changed." : "The server is added.")}
      onCancel={onDone}
    >
      <div className="form-row">
        <TextField label="Slug" value={values.slug} onChange={(slug) => set({ slug })} problem={saving.of("/slug")} hint="First half of the names of its tools." />
        <TextField label="Name" value={values.display_name} onChange={(display_name) => set({ display_name })} problem={saving.of("/display_name")} />
      </div>
      <TextField label="Address" type="url" value={values.url} onChange={(url) => set({ url })} problem={saving.of("/url")} placeholder="https://mcp.example.org/mcp" />
      <TextField label="Description" value={values.description} onChange={(description) => set({ description })} problem={saving.of("/description")} />
      <div className="form-row">
        <SelectField label="Transport" value={values.transport} options={TRANSPORTS} onChange={(transport) => set({ transport })} />
        <SelectField label="Authorized by" value={values.auth_kind} options={KINDS} onChange={(auth_kind) => set({ auth_kind, secret: "" })} />
      </div>
      <Credentials values={values} server={server} set={set} problem={saving.of("/credentials")} />
      <div className="form-row">
        <SelectField label="Used by" value={values.availability} options={AVAILABILITIES} onChange={(availability) => set({ availability })} />
        <SelectField label="A person approves calls" value={values.approval_policy} options={APPROVALS} onChange={(approval_policy) => set({ approval_policy })} />
      </div>
      {FLAGS.map(([name, label]) => (
        <CheckField key={name} label={label} checked={values[name]} onChange={(checked) => set({ [name]: checked })} />
      ))}
      <div className="form-row">
        <AreaField label="Only these tools" rows={3} value={values.allow} onChange={(allow) => set({ allow })} problem={saving.of("/tool_allow_list")} hint="One name on a line; empty for all." />
        <AreaField label="Never these tools" rows={3} value={values.deny} onChange={(deny) => set({ deny })} problem={saving.of("/tool_deny_list")} hint="This list wins." />
      </div>
      <AreaField label="Headers whose values each user gives" rows={2} value={values.slots} onChange={(slots) => set({ slots })} problem={saving.of("/user_values")} hint="Header: what to give, one on a line." />
      <Access values={values} set={set} />
      <Button disabled={probe === "running" || !values.url.trim()} onClick={() => void ask()}>Try these settings</Button>
      {probe && <ProbeResult probe={probe} />}
    </Form>
  );
}

interface PartProps {
  values: Values;
  set: (change: Partial<Values>) => void;
}

function Credentials({ values, server, set, problem }: PartProps & { server: Server | undefined; problem: string | undefined }) {
  const stored = server?.stored_credentials;
  const isMoved = server !== undefined && needsCredentials(server, values.url);
  const hint = isMoved ? "Give it again: what is stored was given for another host." : "Empty keeps what is stored.";
  if (values.auth_kind === "oauth2") {
    return (
      <div className="form-row">
        <TextField label="Client id" value={values.client_id} onChange={(client_id) => set({ client_id })} hint="Empty: this installation introduces or registers itself." />
        <TextField label="Client secret" type="password" value={values.secret} onChange={(secret) => set({ secret })} problem={problem} hint={stored?.has_oauth_client_secret ? hint : ""} />
      </div>
    );
  }
  if (values.auth_kind === "api_key") {
    return (
      <div className="form-row">
        <TextField label="Header of the key" value={values.header} onChange={(header) => set({ header })} placeholder="Authorization" />
        <TextField label="Key" type="password" value={values.secret} onChange={(secret) => set({ secret })} problem={problem} hint={stored?.has_api_key ? hint : ""} />
      </div>
    );
  }
  if (values.auth_kind !== "custom_headers") return null;
  const names = stored?.custom_header_names ?? [];
  return (
    <AreaField label="Headers" rows={3} value={values.secret} onChange={(secret) => set({ secret })} problem={problem} hint={names.length ? `Stored: ${names.join(", ")}. ${hint}` : "Name: value, one on a line."} />
  );
}

function Access({ values, set }: PartProps) {
  const people = useQuery(users).data?.items ?? [];
  const bodies = useQuery(groups).data?.items ?? [];
  const flipped = (ids: readonly string[], id: string): string[] => (ids.includes(id) ? ids.filter((each) => each !== id) : [...ids, id]);
  return (
    <fieldset className="field">
      <legend className="field-label">Who may use it (nobody chosen: everyone)</legend>
      {bodies.map((each) => (
        <CheckField key={each.id} label={`Group ${each.name}`} checked={values.group_ids.includes(each.id)} onChange={() => set({ group_ids: flipped(values.group_ids, each.id) })} />
      ))}
      {people.map((each) => (
        <CheckField key={each.id} label={each.login} checked={values.user_ids.includes(each.id)} onChange={() => set({ user_ids: flipped(values.user_ids, each.id) })} />
      ))}
    </fieldset>
  );
}
