/** Workspaces with what can be done to them. */
import { answered, api } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { ago, bytes } from "../ui/format.ts";
import { complain } from "../ui/toasts.tsx";
import { nameOf, useChatTitles } from "./names.ts";

type Workspace = components["schemas"]["Workspace"];

const STATES: Record<components["schemas"]["WorkspaceState"], string> = {
  pending: "Waits for a node",
  preparing: "Being made",
  ready: "Ready",
  busy: "Running",
  stopping: "Stopping",
  stopped: "Stopped",
  deleted: "Deleted",
  failed: "Failed",
};
const HOUR_MS = 3_600_000;
const LIVE = new Set(["ready", "busy", "pending", "preparing"]);

export interface WorkspaceTableProps {
  rows: readonly Workspace[];
  empty: string;
  /** Names of owners by id, where several people's are listed. */
  owners?: ReadonlyMap<string, string>;
  onChanged: () => Promise<unknown>;
}

export function WorkspaceTable({ rows, empty, owners, onChanged }: WorkspaceTableProps) {
  const now = Date.now();
  const titles = useChatTitles();

  async function change(work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      complain(error);
    }
    await onChanged();
  }

  return (
    <Table
      label="Workspaces"
      rows={rows}
      keyOf={(row) => row.id}
      empty={{ title: "No workspaces", text: empty }}
      columns={[
        {
          title: "Name",
          cell: (row) => (
            <>
              <span className="cell-main">{nameOf(row, titles)}</span>
              <span className="cell-side">
                {[row.template_name, row.git_branch, owners?.get(row.owner_id)].filter(Boolean).join(" · ")}
              </span>
            </>
          ),
        },
        {
          title: "State",
          cell: (row) => (
            <span className={`badge${row.state === "failed" ? " is-bad" : LIVE.has(row.state ?? "") ? " is-accent" : ""}`}>
              {row.state ? STATES[row.state] : "Unknown"}
            </span>
          ),
        },
        { title: "Disk", isNumber: true, cell: (row) => (row.usage ? bytes(row.usage.disk_bytes) : "") },
        { title: "Used", isShort: true, cell: (row) => ago(row.last_used_at, now) },
        { title: "Stops", isShort: true, cell: (row) => (row.deadline && LIVE.has(row.state ?? "") ? until(row.deadline, now) : "") },
        {
          title: "",
          cell: (row) => {
            const params = { path: { workspace_id: row.id } };
            return (
              <div className="table-actions">
                {LIVE.has(row.state ?? "") ? (
                  <>
                    {row.deadline && !row.is_ttl_fixed && (
                      <Button
                        small
                        onClick={() =>
                          void change(
                            answered(
                              api.PUT("/api/v1/workspaces/{workspace_id}/ttl", {
                                params,
                                body: { ttl_ms: row.ttl_ms + HOUR_MS },
                              }),
                            ),
                          )
                        }
                      >
                        One hour more
                      </Button>
                    )}
                    <Button
                      small
                      onClick={() =>
                        void change(answered(api.POST("/api/v1/workspaces/{workspace_id}/stop", { params, body: {} })))
                      }
                    >
                      Stop
                    </Button>
                  </>
                ) : (
                  <Button
                    small
                    onClick={() =>
                      void change(answered(api.POST("/api/v1/workspaces/{workspace_id}/start", { params, body: {} })))
                    }
                  >
                    Start
                  </Button>
                )}
                <ConfirmButton
                  label="Remove"
                  title={`Remove ${nameOf(row, titles)}?`}
                  text="Its files are deleted. This cannot be undone."
                  done="The workspace is removed."
                  onConfirm={async () => {
                    await answered(api.DELETE("/api/v1/workspaces/{workspace_id}", { params }));
                    await onChanged();
                  }}
                />
              </div>
            );
          },
        },
      ]}
    />
  );
}

function until(deadline: string, now: number): string {
  const left = Date.parse(deadline) - now;
  if (left <= 0) return "now";
  const minutes = Math.round(left / 60_000);
  return minutes < 90 ? `in ${minutes} min` : `in ${Math.round(minutes / 60)} h`;
}
