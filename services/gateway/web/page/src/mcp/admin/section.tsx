/** MCP servers for administrators: settings, health, tools, and the calls that were made. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { CheckField } from "../../forms/fields.tsx";
import { toolWords } from "../../cards/outcome.ts";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { ago, duration, plural } from "../../ui/format.ts";
import { Empty } from "../../ui/states.tsx";
import { complain } from "../../ui/toasts.tsx";
import { users } from "../../admin/queries.ts";
import { Visible } from "../../ui/visible.tsx";
import { type Probe, ProbeResult } from "./probe.tsx";
import type { Server } from "../selection.ts";
import { ServerForm } from "./server-form.tsx";
import { refreshServers, servers } from "../servers.ts";
import { ServerTools } from "./tools.tsx";
import { OUTCOMES, reasonWords, STATES } from "./words.ts";

const calls = queryOptions({
  queryKey: ["mcp", "calls"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/mcp/calls", { params: { query: { limit: 50 } }, signal })),
});

export default function McpServersSection() {
  const [isAdding, setAdding] = useState(false);
  return (
    <>
      <div className="section-part">
        <Button look="primary" icon="add" onClick={() => setAdding(true)}>Add a server</Button>
      </div>
      {isAdding && (
        <Dialog title="Add an MCP server" wide onClose={() => setAdding(false)}>
          <ServerForm onDone={() => setAdding(false)} />
        </Dialog>
      )}
      <Loaded query={useQuery(servers)} what="list of MCP servers">
        {({ items }) =>
          items.length ? (
            <div className="cards">
              {items.map((each) => (
                <ServerCard key={each.id} server={each} />
              ))}
            </div>
          ) : (
            <Empty title="No MCP servers">A server offers tools that chats call, such as an issue tracker. Add one by its address.</Empty>
          )
        }
      </Loaded>
      <h3 className="section-part-title">Latest calls</h3>
      <Calls />
    </>
  );
}

function ServerCard({ server }: { server: Server }) {
  const [open, setOpen] = useState<"edit" | "tools">();
  const [probe, setProbe] = useState<Probe | "running">();
  const params = { path: { server_id: server.id } };

  async function ask(): Promise<void> {
    setProbe("running");
    try {
      setProbe(await answered(api.POST("/api/v1/mcp/servers/{server_id}/probe", { params })));
      await refreshServers();
    } catch (error) {
      setProbe(undefined);
      complain(error);
    }
  }

  async function enable(is_enabled: boolean): Promise<void> {
    const header = { "If-Match": `"${server.version}"` };
    await answered(api.PATCH("/api/v1/mcp/servers/{server_id}", { params: { ...params, header }, body: { is_enabled } })).catch(complain);
    await refreshServers();
  }

  return (
    <section className="card" aria-label={server.display_name}>
      <header className="card-head">
        <h4 className="section-part-title">{server.display_name}</h4>
        <span className="badge">{server.slug}</span>
        <Health server={server} />
        {server.quarantined_tool_count > 0 && <span className="badge is-warn">{plural(server.quarantined_tool_count, "changed tool")}</span>}
      </header>
      <p className="field-hint"><Visible>{server.url ?? ""}</Visible></p>
      <CheckField label="Enabled" checked={server.is_enabled} onChange={(checked) => void enable(checked)} />
      {probe && <ProbeResult probe={probe} />}
      <div className="table-actions">
        <Button small onClick={() => setOpen("edit")}>Edit</Button>
        <Button small disabled={probe === "running"} onClick={() => void ask()}>Test the connection</Button>
        <Button small onClick={() => setOpen("tools")}>Tools</Button>
        <ConfirmButton
          label="Delete"
          title={`Delete ${server.display_name}?`}
          text="Chats lose its tools at once, and all logins and values of users are deleted."
          onConfirm={async () => {
            await answered(api.DELETE("/api/v1/mcp/servers/{server_id}", { params }));
            await refreshServers();
          }}
        />
      </div>
      {open === "edit" && (
        <Dialog title={`Edit ${server.display_name}`} wide onClose={() => setOpen(undefined)}>
          <EditForm server={server} onDone={() => setOpen(undefined)} />
        </Dialog>
      )}
      {open === "tools" && (
        <Dialog title={`Tools of ${server.display_name}`} wide onClose={() => setOpen(undefined)}>
          <ServerTools server={server} />
        </Dialog>
      )}
    </section>
  );
}

/** The form of the version that was shown when it was opened: a later one is not overwritten unseen. */
function EditForm({ server, onDone }: { server: Server; onDone: () => void }) {
  const [opened] = useState(server);
  return <ServerForm server={opened} onDone={onDone} />;
}

function Health({ server }: { server: Server }) {
  const health = server.health;
  if (!health?.state) return null;
  const isReady = health.state === "ready";
  return (
    <span className={`badge ${isReady ? "is-accent" : "is-bad"}`} title={[health.reason && reasonWords(health.reason).remedy, health.detail].filter(Boolean).join(" ")}>
      {isReady ? plural(health.tool_count, "tool") : STATES[health.state]}
    </span>
  );
}

function Calls() {
  const logins = new Map((useQuery(users).data?.items ?? []).map((each) => [each.id, each.login]));
  return (
    <Loaded query={useQuery(calls)} what="list of calls">
      {({ items }) => (
        <Table
          label="Latest calls of MCP tools"
          rows={items}
          keyOf={(row) => row.execution_id}
          empty={{ title: "No calls", text: "Calls are listed here with who made them and how they ended." }}
          columns={[
            { title: "When", cell: (row) => ago(row.started_at, Date.now()) },
            { title: "Who", cell: (row) => logins.get(row.user_id ?? "") ?? "A user who is gone" },
            { title: "Tool", cell: (row) => <><Visible>{toolWords(row.original_name)}</Visible><span className="cell-side"><Visible>{row.slug}</Visible></span></> },
            { title: "Outcome", cell: (row) => (row.outcome ? OUTCOMES[row.outcome] : "Running") },
            { title: "Took", cell: (row) => duration(row.duration_ms), isNumber: true },
          ]}
        />
      )}
    </Loaded>
  );
}
