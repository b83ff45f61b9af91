/** Messages that are sent at a time or repeatedly. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { Schedule } from "../api/types.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { AreaField, TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { complain, say } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";

const schedules = queryOptions({
  queryKey: ["me", "schedules"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/schedules", { signal, params: { query: { limit: 200 } } })),
});

function refresh(): Promise<void> {
  return queryClient.invalidateQueries({ queryKey: schedules.queryKey });
}

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
                  <>
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
                  </>
                ),
              },
            ]}
          />
        )}
      </Loaded>
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
  const [text, setText] = useState("");
  const [cron, setCron] = useState("");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const saving = useSaving();

  async function make(): Promise<void> {
    await answered(api.POST("/api/v1/schedules", { body: { text, cron, time_zone: zone } }));
    setText("");
    setCron("");
    await refresh();
  }

  return (
    <div className="section-part">
      <Form
        saving={saving}
        label="Make the schedule"
        disabled={!(text.trim() && cron.trim())}
        onSubmit={() => void saving.save(make, "The schedule is made.")}
      >
        <AreaField label="Message" value={text} onChange={setText} rows={4} problem={saving.of("/text")} hint="Each run begins a chat with it." />
        <TextField
          label="Cron expression"
          value={cron}
          onChange={setCron}
          problem={saving.of("/cron") ?? saving.of("/time_zone")}
          hint={`Minute, hour, day of month, month and day of week, such as 30 9 * * mon-fri, in ${zone}.`}
        />
      </Form>
    </div>
  );
}
