/** Messages that are sent at a time or repeatedly. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answered, api } from "../api/client.ts";
import type { Schedule } from "../api/types.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { complain, say } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { EditDialog } from "./edit-dialog.tsx";
import { refresh, schedules } from "./queries.ts";
import { RunsDialog } from "./runs.tsx";
import { ScheduleForm } from "./schedule-form.tsx";
import { bodyOf, type ScheduleValues } from "./schedule-values.ts";

async function remove(scheduleId: string): Promise<void> {
  await answered(api.DELETE("/api/v1/schedules/{schedule_id}", { params: { path: { schedule_id: scheduleId } } }));
  await refresh();
}

async function toggle(row: Schedule): Promise<void> {
  const params = { path: { schedule_id: row.id } };
  try {
    if (row.state === "active") {
      await answered(api.POST("/api/v1/schedules/{schedule_id}/pause", { params, body: {} }));
      say("The schedule is paused.");
    } else {
      await answered(api.POST("/api/v1/schedules/{schedule_id}/resume", { params, body: {} }));
      say("The schedule is resumed.");
    }
    await refresh();
  } catch (error) {
    complain(error);
  }
}

function time(at: string | null): string {
  return at ? new Date(at).toLocaleString() : "";
}

export default function SchedulesSection() {
  const [open, setOpen] = useState<Schedule>();
  const [edited, setEdited] = useState<Schedule>();
  return (
    <>
      <NewSchedule />
      <Loaded query={useQuery(schedules)} what="list of schedules">
        {(data) => (
          <Table
            label="Schedules"
            rows={data.items}
            keyOf={(row) => row.id}
            empty={{ title: "No schedules", text: "A schedule sends a message for you, once or repeatedly." }}
            columns={[
              {
                title: "Message",
                cell: (row) => (
                  <>
                    <span className="cell-main"><Visible>{row.name || row.text.slice(0, 80)}</Visible></span>
                    <span className="cell-side">{row.cron ? `${row.cron} (${row.time_zone ?? "UTC"})` : time(row.at)}</span>
                  </>
                ),
              },
              { title: "State", cell: (row) => <State row={row} /> },
              { title: "Last run", cell: (row) => <LastRun row={row} /> },
              {
                title: "",
                cell: (row) => (
                  <div className="table-actions">
                    <Button small onClick={() => setOpen(row)}>Runs</Button>
                    <Button small onClick={() => setEdited(row)}>Change</Button>
                    {row.state !== "ended" && (
                      <Button small onClick={() => void toggle(row)}>
                        {row.state === "active" ? "Pause" : "Resume"}
                      </Button>
                    )}
                    <ConfirmButton
                      label="Delete"
                      title="Delete this schedule?"
                      text="It sends nothing any more. The chats of its runs stay."
                      done="The schedule is deleted."
                      onConfirm={() => remove(row.id)}
                    />
                  </div>
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {open && <RunsDialog schedule={open} onClose={() => setOpen(undefined)} />}
      {edited && <EditDialog scheduleId={edited.id} onClose={() => setEdited(undefined)} />}
    </>
  );
}

function State({ row }: { row: Schedule }) {
  const next = row.next_run_at ? `next ${time(row.next_run_at)}` : "";
  return (
    <>
      <span className="cell-main">{row.state}</span>
      <span className="cell-side">{row.pause_reason ?? next}</span>
    </>
  );
}

function LastRun({ row }: { row: Schedule }) {
  const run = row.last_run;
  if (!run) return null;
  return (
    <>
      <span className="cell-main">{run.chat_id ? <Link href={`/chats/${run.chat_id}`}>{run.outcome}</Link> : run.outcome}</span>
      <span className="cell-side">{run.error ?? time(run.planned_at)}</span>
    </>
  );
}

function NewSchedule() {
  // Another key is another form, which is empty.
  const [made, setMade] = useState(0);
  const saving = useSaving();

  async function make(values: ScheduleValues): Promise<void> {
    await answered(api.POST("/api/v1/schedules", { body: bodyOf(values) }));
    setMade((was) => was + 1);
    await refresh();
  }

  return (
    <div className="section-part">
      <ScheduleForm
        key={made}
        schedule={null}
        saving={saving}
        label="Make the schedule"
        onSubmit={(values) => void saving.save(() => make(values), "The schedule is made.")}
      />
    </div>
  );
}
