/** The MCP servers that one may use: one's own logins and values. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Empty } from "../ui/states.tsx";
import { ConnectButton } from "./login.tsx";
import { type Server, stateOf } from "./selection.ts";
import { logins, refreshServers, servers } from "./servers.ts";

export default function OwnServersSection() {
  return (
    <>
      <UsableServers />
      <LostLogins />
    </>
  );
}

/** Logins at servers that are switched off or not for this user any more: they can only be given up. */
function LostLogins() {
  const lost = (useQuery(logins).data?.items ?? []).filter((each) => !each.is_usable);
  if (lost.length === 0) return null;
  return (
    <section className="cards" aria-label="Logins at servers that you may no longer use">
      {lost.map((each) => (
        <section key={each.server_id} className="card" aria-label={each.display_name}>
          <header className="card-head">
            <h3 className="section-part-title">{each.display_name}</h3>
            <span className="badge is-warn">no longer usable</span>
          </header>
          <div className="table-actions">
            <DisconnectButton id={each.server_id} name={each.display_name} />
          </div>
        </section>
      ))}
    </section>
  );
}

function UsableServers() {
  return (
    <Loaded query={useQuery(servers)} what="list of MCP servers">
      {({ items }) => {
        const usable = items.filter((each) => each.is_enabled);
        if (usable.length === 0) return <Empty title="No MCP servers">An administrator adds servers, whose tools chats can use.</Empty>;
        return (
          <div className="cards">
            {usable.map((each) => (
              <OwnServer key={each.id} server={each} />
            ))}
          </div>
        );
      }}
    </Loaded>
  );
}

function OwnServer({ server }: { server: Server }) {
  const state = stateOf(server);
  const hasLogin = ["connected", "expired_refreshable", "insufficient_scope", "needs_reconnect"].includes(server.authorization_status ?? "");
  return (
    <section className="card" aria-label={server.display_name}>
      <header className="card-head">
        <h3 className="section-part-title">{server.display_name}</h3>
        <span className={`badge ${state.action ? "is-warn" : "is-accent"}`}>{state.words}</span>
      </header>
      {server.description && <p className="field-hint">{server.description}</p>}
      {server.user_values.length > 0 && <OwnValues server={server} />}
      <div className="table-actions">
        <ConnectButton server={server} />
        {hasLogin && <DisconnectButton id={server.id} name={server.display_name} />}
      </div>
    </section>
  );
}

function DisconnectButton({ id, name }: { id: string; name: string }) {
  return (
    <ConfirmButton
      label="Disconnect"
      title={`Disconnect ${name}?`}
      text="Your login is deleted here and revoked there. Chats can no longer use its tools for you."
      done="The login is deleted."
      onConfirm={async () => {
        await answered(api.DELETE("/api/v1/mcp/servers/{server_id}/login", { params: { path: { server_id: id } } }));
        await refreshServers();
      }}
    />
  );
}

function OwnValues({ server }: { server: Server }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const saving = useSaving();
  const params = { path: { server_id: server.id } };
  const given = Object.fromEntries(Object.entries(values).filter(([, value]) => value.trim()));

  async function store(): Promise<void> {
    await answered(api.PUT("/api/v1/mcp/servers/{server_id}/me/values", { params, body: { values: given } }));
    setValues({});
    await refreshServers();
  }

  return (
    <>
      <Form
        saving={saving}
        label="Store the values"
        disabled={Object.keys(given).length === 0}
        onSubmit={() => void saving.save(store, "Your values are stored.")}
      >
        {server.user_values.map((slot) => (
          <TextField
            key={slot.header}
            label={slot.header}
            type="password"
            value={values[slot.header] ?? ""}
            onChange={(value) => setValues({ ...values, [slot.header]: value })}
            hint={[slot.description, server.own_value_headers.includes(slot.header) ? "A value is stored." : ""].filter(Boolean).join(" ")}
          />
        ))}
      </Form>
      {server.own_value_headers.length > 0 && (
        <ConfirmButton
          label="Delete the values"
          title={`Delete your values of ${server.display_name}?`}
          text="Its tools are not offered to you until you give them again."
          onConfirm={async () => {
            await answered(api.DELETE("/api/v1/mcp/servers/{server_id}/me/values", { params }));
            await refreshServers();
          }}
        />
      )}
    </>
  );
}
