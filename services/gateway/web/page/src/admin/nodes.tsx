/** The machines that host workspaces. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { answered, api } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { ago, bytes } from "../ui/format.ts";

const STATES: Record<components["schemas"]["NodeState"], string> = {
  active: "Takes workspaces",
  draining: "Takes no more",
  lost: "Cannot be reached",
  gone: "Left",
};

const LEVELS: Record<components["schemas"]["SandboxLevel"], string> = {
  none: "None",
  uid: "A user of its own",
  landlock: "Landlock",
  ns: "Namespaces",
  vm: "A virtual machine",
};

const nodes = queryOptions({
  queryKey: ["admin", "nodes"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/nodes", { signal })),
  refetchInterval: 15_000,
});

export default function NodesSection() {
  const now = Date.now();
  return (
    <Loaded query={useQuery(nodes)} what="list of nodes">
      {(data) => (
        <Table
          label="Nodes"
          rows={data.items}
          keyOf={(row) => row.id}
          empty={{ title: "No nodes", text: "Start a toolrunner: chats without one have no workspace tools." }}
          columns={[
            {
              title: "Node",
              cell: (row) => (
                <>
                  <span className="cell-main">{row.name}</span>
                  <span className="cell-side">{row.version}</span>
                </>
              ),
            },
            {
              title: "State",
              cell: (row) => (
                <span className={`badge${row.state === "active" ? " is-accent" : " is-warn"}`}>{row.state ? STATES[row.state] : "Unknown"}</span>
              ),
            },
            {
              title: "Sandbox",
              cell: (row) => (
                <details>
                  <summary>{row.sandbox.level ? LEVELS[row.sandbox.level] : "Unknown"}</summary>
                  <span className="cell-side">{row.sandbox.summary}</span>
                </details>
              ),
            },
            {
              title: "Workspaces",
              isNumber: true,
              cell: (row) => `${row.load.workspaces} of ${row.capacity.workspaces}`,
            },
            {
              title: "Memory",
              isNumber: true,
              cell: (row) => `${bytes(row.load.memory_bytes)} of ${bytes(row.capacity.memory_bytes)}`,
            },
            { title: "Disk free", isNumber: true, cell: (row) => bytes(row.load.disk_free_bytes) },
            { title: "Seen", cell: (row) => ago(row.last_seen_at, now) },
          ]}
        />
      )}
    </Loaded>
  );
}
