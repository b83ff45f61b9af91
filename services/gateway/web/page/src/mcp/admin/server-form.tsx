/** The settings of an MCP server: a new one, or changes of the version that was read. */
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { groups, users } from "../../admin/queries.ts";
import { answered, api } from "../../api/client.ts";
import type { components } from "../../api/schema.d.ts";
import { AreaField, CheckField, SelectField, TextField } from "../../forms/fields.tsx";
import { Form, type Saving, useSaving } from "../../forms/form.tsx";
import { Button } from "../../ui/button.tsx";
import { needsCredentials } from "./origins.ts";
import { type Probe, ProbeResult } from "./probe.tsx";
import type { Server } from "../selection.ts";
import { refreshServers } from "../servers.ts";
import { linesOf, pairsOf } from "../../forms/text-lists.ts";

type Body = components["schemas"]["CreateServerBody"] & components["schemas"]["UpdateServerBody"];

const AVAILABILITIES = [["default_off", "Chats that choose it"], ["default_on", "Chats that chose no servers"], ["force_on", "Every chat"]] as const;
const APPROVALS = [["destructive", "Unless a trusted server calls a tool harmless"], ["always", "Always"], ["never", "Never"]] as const;
const TRANSPORTS = [["streamable_http", "Streamable HTTP"], ["sse", "HTTP with SSE (older servers)"]] as const;
const KINDS = [["none", "Nothing: it is open"], ["oauth2", "A login of each user (OAuth)"], ["api_key", "One key for everyone"], ["custom_headers", "Headers for everyone"]] as const;
const OAUTH_ADDRESSES = [
  ["issuer", "Authorization server"],
  ["authorization_url", "Where users sign in"],
  ["token_url", "Where tokens are given"],
  ["revocation_url", "Where tokens are taken back"],
] as const;
const FLAGS = [
  ["is_enabled", "Enabled"],
  ["is_trusted", "Trusted: believe what it says about the effects of its tools"],
  ["is_required", "Required: turns fail while it does not answer"],
  ["allow_in_plan_mode", "Chats that plan may use it"],
  ["is_stateful", "Each chat has a session of its own"],
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
    is_enabled: server?.is_enabled ?? true,
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
    issuer: server?.oauth?.issuer ?? "",
    authorization_url: server?.oauth?.authorization_url ?? "",
    token_url: server?.oauth?.token_url ?? "",
    revocation_url: server?.oauth?.revocation_url ?? "",
    scopes: (server?.oauth?.scopes ?? []).join(" "),
    secret: "",
    header: server?.api_key_header ?? "",
  };
}

type Values = ReturnType<typeof valuesOf>;

/** Return what is sent; a secret that was not typed stays as it is stored. */
function bodyOf(values: Values, server: Server | undefined): Body {
  const { allow, deny, slots, client_id, issuer, authorization_url, token_url, revocation_url, scopes, secret, header, ...settings } = values;
  const body: Body = {
    ...settings,
    tool_allow_list: linesOf(allow),
    tool_deny_list: linesOf(deny),
    user_values: pairsOf(slots).map(([name, description]) => ({ header: name, description })),
  };
  const oauth = { client_id, issuer, authorization_url, token_url, revocation_url, scopes: scopes.split(/[\s,]+/).filter(Boolean) };
  const isSaid = Object.values(oauth).some((each) => each.length > 0);
  if (values.auth_kind === "oauth2" && (isSaid || server?.oauth)) body.oauth = oauth;
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
  // Of a new server the first half of its tools' names follows its name until it is written.
  const [isSlugOwn, setSlugOwn] = useState(server !== undefined);
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
    const isTold = await saving.save(async () => setProbe(await answered(api.POST("/api/v1/mcp/probe", { body: bodyOf(values, server) }))));
      if (!isTold) setProbe(undefined);
  }

  return (
    <Form
      saving={saving}
      label={server ? "Save" : "Add the server"}
      disabled={!values.slug.trim() || !values.url.trim()}
      onSubmit={() => void saving.save(save, server ? "The server is changed." : "The server is added.")}
      onCancel={onDone}
    >
      <FieldGroup title="The server">
        <div className="form-row">
          <TextField
            label="Name"
            value={values.display_name}
            onChange={(display_name) => set({ display_name, ...(isSlugOwn ? {} : { slug: slugOf(display_name) }) })}
            problem={saving.of("/display_name")}
            placeholder="Issue tracker"
          />
          <TextField
            label="Short name"
            value={values.slug}
            onChange={(slug) => {
              setSlugOwn(true);
              set({ slug });
            }}
            problem={saving.of("/slug")}
            hint="Its tools are called by it: a-z, 0-9 and dashes."
          />
        </div>
        <div className="form-row">
          <TextField
            label="Address"
            type="url"
            value={values.url}
            onChange={(url) => set({ url })}
            problem={saving.of("/url")}
            placeholder="https://mcp.example.org/mcp"
            hint="With the path at which it speaks MCP."
          />
          <SelectField
            label="Transport"
            value={values.transport}
            options={TRANSPORTS}
            onChange={(transport) => set({ transport })}
            problem={saving.of("/transport")}
            hint="Its documentation says which; nearly all speak Streamable HTTP."
          />
        </div>
        <TextField label="Description" value={values.description} onChange={(description) => set({ description })} problem={saving.of("/description")} hint="Shown to people who choose servers." />
      </FieldGroup>
      <FieldGroup title="Authorization">
        <SelectField label="Authorized by" value={values.auth_kind} options={KINDS} onChange={(auth_kind) => set({ auth_kind, secret: "" })} problem={saving.of("/auth_kind")} />
        <Credentials values={values} server={server} set={set} saving={saving} />
        <AreaField label="Headers whose values each user gives" rows={2} value={values.slots} onChange={(slots) => set({ slots })} problem={saving.of("/user_values")} hint="Header: what to give, one on a line." />
      </FieldGroup>
      <div className="table-actions">
        <Button disabled={probe === "running" || saving.isBusy || !values.url.trim()} onClick={() => void ask()}>
          {probe === "running" ? "Testing…" : "Test the connection"}
        </Button>
      </div>
      {probe && <ProbeResult probe={probe} />}
      <FieldGroup title="Use">
        <div className="form-row">
          <SelectField label="Used by" value={values.availability} options={AVAILABILITIES} onChange={(availability) => set({ availability })} problem={saving.of("/availability")} />
          <SelectField
            label="A person approves calls"
            value={values.approval_policy}
            options={APPROVALS}
            onChange={(approval_policy) => set({ approval_policy })}
            problem={saving.of("/approval_policy")}
          />
        </div>
        {FLAGS.map(([name, label]) => (
          <CheckField key={name} label={label} checked={values[name]} onChange={(checked) => set({ [name]: checked })} />
        ))}
        <div className="form-row">
          <AreaField label="Only these tools" rows={3} value={values.allow} onChange={(allow) => set({ allow })} problem={saving.of("/tool_allow_list")} hint="One name on a line; empty for all." />
          <AreaField label="Never these tools" rows={3} value={values.deny} onChange={(deny) => set({ deny })} problem={saving.of("/tool_deny_list")} hint="This list wins." />
        </div>
        <Access values={values} set={set} />
      </FieldGroup>
    </Form>
  );
}

/** Make the first half of tool names of a name that people read. */
export function slugOf(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9]+/g, "-").slice(0, 32).replace(/^-+|-+$/g, "");
}

function FieldGroup({ title, children }: { title: string; children: ReactNode }) {
  return (
    <fieldset className="field-group">
      <legend className="section-part-title">{title}</legend>
      {children}
    </fieldset>
  );
}

interface PartProps {
  values: Values;
  set: (change: Partial<Values>) => void;
}

function Credentials({ values, server, set, saving }: PartProps & { server: Server | undefined; saving: Saving }) {
  const problem = saving.of("/credentials");
  const stored = server?.stored_credentials;
  const isMoved = server !== undefined && needsCredentials(server, values.url);
  const hint = isMoved ? "Give it again: what is stored was given for another host." : "Empty keeps what is stored.";
  if (values.auth_kind === "oauth2") {
    return (
      <>
        <p className="field-hint">Each user signs in under Settings, MCP servers. Usually nothing more is needed: the server says where.</p>
        <div className="form-row">
          <TextField label="Client id" value={values.client_id} onChange={(client_id) => set({ client_id })} problem={saving.of("/oauth/client_id")} hint="Empty: this installation introduces or registers itself." />
          <TextField label="Client secret" type="password" value={values.secret} onChange={(secret) => set({ secret })} problem={problem} hint={stored?.has_oauth_client_secret ? hint : "If the client has one."} />
        </div>
        <TextField label="Scopes" value={values.scopes} onChange={(scopes) => set({ scopes })} problem={saving.of("/oauth/scopes")} hint="Separated by spaces; empty for those that the server names." />
        <details className="form-more" open={OAUTH_ADDRESSES.some(([name]) => values[name] !== "" || saving.of(`/oauth/${name}`) !== undefined)}>
          <summary>Addresses, for a server that does not name them</summary>
          <div className="form">
            {OAUTH_ADDRESSES.map(([name, label]) => (
              <TextField key={name} label={label} type="url" value={values[name]} onChange={(url) => set({ [name]: url })} problem={saving.of(`/oauth/${name}`)} />
            ))}
          </div>
        </details>
      </>
    );
  }
  if (values.auth_kind === "api_key") {
    return (
      <div className="form-row">
        <TextField label="Header of the key" value={values.header} onChange={(header) => set({ header })} problem={saving.of("/api_key_header")} placeholder="Authorization" hint="Empty for Authorization." />
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
