/** The newest runs of a schedule. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { answered, api } from "../api/client.ts";
import type { Schedule } from "../api/types.ts";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Visible } from "../ui/visible.tsx";

const LOOKS: Record<string, string> = { completed: "is-accent", failed: "is-bad", missed: "is-warn", chat_deleted: "is-warn" };

function runs(scheduleId: string) {
  return queryOptions({
    queryKey: ["me", "schedule-runs", scheduleId],
    staleTime: 0,
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/schedules/{schedule_id}/runs", { params: { path: { schedule_id: scheduleId } }, signal })),
  });
}

export function RunsDialog({ schedule, onClose }: { schedule: Schedule; onClose: () => void }) {
  const query = useQuery(runs(schedule.id));
  return (
    <Dialog title="Runs of the schedule" wide onClose={onClose}>
      <Loaded query={query} what="list of runs">
        {({ items }) => (
          <Table
            label="Runs"
            rows={items}
            keyOf={(row) => row.planned_at ?? ""}
            empty={{ title: "No runs yet", text: schedule.next_run_at ? `The next one is at ${new Date(schedule.next_run_at).toLocaleString()}.` : "Resume the schedule for its next run." }}
            columns={[
              { title: "Due", cell: (row) => (row.planned_at ? new Date(row.planned_at).toLocaleString() : "") },
              {
                title: "Outcome",
                cell: (row) => (
                  <>
                    <span className={`badge ${LOOKS[row.outcome ?? ""] ?? ""}`}>{(row.outcome ?? "unknown").replaceAll("_", " ")}</span>
                    {row.error && <span className="cell-side"><Visible>{row.error}</Visible></span>}
                  </>
                ),
              },
              { title: "Chat", cell: (row) => (row.chat_id && row.outcome !== "chat_deleted" ? <Link href={`/chats/${row.chat_id}`}>Open</Link> : "") },
            ]}
          />
        )}
      </Loaded>
      <div className="dialog-actions">
        <Button onClick={() => void query.refetch()}>Read again</Button>
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
