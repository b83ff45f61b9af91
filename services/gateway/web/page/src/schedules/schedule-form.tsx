/** What a schedule sends, when, and into which chat. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { models } from "../api/queries.ts";
import type { ReasoningEffort, Schedule } from "../api/types.ts";
import { effortsOf } from "../models/picker.tsx";
import { usableWorkspaces } from "../composer/workspace-picker.tsx";
import { AreaField, CheckField, SelectField, TextField, withStored } from "../forms/fields.tsx";
import { Form, type Saving } from "../forms/form.tsx";
import { isComplete, type ScheduleValues, valuesOf } from "./schedule-values.ts";
import { modelOptions } from "../models/model-label.ts";
import { chosenBetween, useChatTitles } from "../workspaces/names.ts";

const REPEATS = [["cron", "Repeatedly"], ["once", "Once"]] as const;
const MISSED = [["skip", "Leave them out"], ["run_once", "Make up for all of them with one run"]] as const;

const chatsToWriteTo = queryOptions({
  queryKey: ["schedule-chats"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/chats", { params: { query: { limit: 50 } }, signal })),
});

/** The fields that are shown on demand. */
const MORE = ["/name", "/chat_id", "/model_id", "/reasoning_effort", "/workspace_id", "/ends_at", "/runs_max"];

interface Props {
  schedule: Schedule | null;
  saving: Saving;
  label: string;
  onSubmit: (values: ScheduleValues) => void;
  onCancel?: () => void;
}

export function ScheduleForm({ schedule, saving, label, onSubmit, onCancel }: Props) {
  const zone = ownZone();
  const [values, setValues] = useState(() => valuesOf(schedule, zone));
  const set = (change: Partial<ScheduleValues>): void => setValues((was) => ({ ...was, ...change }));
  const part = { values, set, problemOf: saving.of };
  return (
    <Form
      saving={saving}
      label={label}
      disabled={!isComplete(values)}
      onSubmit={() => onSubmit(values)}
      {...(onCancel ? { onCancel } : {})}
    >
      <AreaField label="Message" value={values.text} onChange={(text) => set({ text })} rows={4} problem={saving.of("/text")} />
      <When {...part} zone={zone} />
      <details className="form-more" {...(MORE.some(saving.of) ? { open: true } : {})}>
        <summary>More: name, chat, model, workspace, missed runs, end</summary>
        <div className="form">
          <Where {...part} />
          {values.repeats === "cron" && <Ends {...part} />}
        </div>
      </details>
    </Form>
  );
}

/** The time zone of the browser. */
export function ownZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

interface PartProps {
  values: ScheduleValues;
  set: (change: Partial<ScheduleValues>) => void;
  problemOf: (pointer: string) => string | undefined;
}

function When({ values, set, problemOf, zone }: PartProps & { zone: string }) {
  return (
    <>
      <SelectField label="Sent" value={values.repeats} options={REPEATS} onChange={(repeats) => set({ repeats })} />
      {values.repeats === "once" ? (
        <TextField label="At" type="datetime-local" value={values.at} onChange={(at) => set({ at })} problem={problemOf("/at")} hint={`In ${zone}.`} />
      ) : (
        <div className="form-row">
          <TextField
            label="Cron expression"
            value={values.cron}
            onChange={(cron) => set({ cron })}
            problem={problemOf("/cron")}
            placeholder="30 9 * * mon-fri"
            hint="Minute, hour, day of month, month and day of week."
          />
          <TextField label="Time zone" value={values.time_zone} onChange={(time_zone) => set({ time_zone })} problem={problemOf("/time_zone")} />
        </div>
      )}
    </>
  );
}

function Where({ values, set, problemOf }: PartProps) {
  const chats = useQuery(chatsToWriteTo).data?.items ?? [];
  const known = (useQuery(models).data?.items ?? []).filter((each) => each.enabled || each.id === values.model_id);
  const workspaces = chosenBetween(useQuery(usableWorkspaces).data?.items ?? [], useChatTitles());
  const efforts = effortsOf(known.find((each) => each.id === values.model_id));
  return (
    <>
      <TextField label="Name" value={values.name} onChange={(name) => set({ name })} problem={problemOf("/name")} maxLength={200} hint="Also the title of the chats that it begins." />
      <SelectField
        label="Chat"
        value={values.chat_id}
        options={withStored([["", "A new one for each run"], ...chats.map((each) => [each.id, each.title || "Untitled"] as const)], values.chat_id)}
        onChange={(chat_id) => set({ chat_id })}
        problem={problemOf("/chat_id")}
      />
      <div className="form-row">
        <SelectField
          label="Model"
          value={values.model_id}
          options={withStored([["", values.chat_id ? "That of the chat" : "The default"], ...modelOptions(known)], values.model_id)}
          onChange={(model_id) => set({ model_id, effort: "" })}
          problem={problemOf("/model_id")}
        />
        {efforts.length > 0 && (
          <SelectField
            label="Effort"
            value={values.effort}
            options={[["", "As configured"], ...efforts.map((each): [ReasoningEffort, string] => [each, each])]}
            onChange={(effort) => set({ effort })}
            problem={problemOf("/reasoning_effort")}
          />
        )}
      </div>
      {!values.chat_id && (
        <>
          <SelectField
            label="Workspace"
            value={values.workspace_id}
            options={withStored([["", "Own files"], ...workspaces.map((each) => [each.id, each.name] as const)], values.workspace_id)}
            onChange={(workspace_id) => set({ workspace_id })}
            problem={problemOf("/workspace_id")}
          />
          <CheckField label="Plan mode" hint="nothing is changed until you accept the plan" checked={values.plans} onChange={(plans) => set({ plans })} />
          <CheckField label="Unattended" hint="what would be asked of you is refused" checked={values.unattended} onChange={(unattended) => set({ unattended })} />
        </>
      )}
    </>
  );
}

function Ends({ values, set, problemOf }: PartProps) {
  return (
    <>
      <SelectField label="Runs whose time passed while nothing could run them" value={values.missed_runs} options={MISSED} onChange={(missed_runs) => set({ missed_runs })} />
      <div className="form-row">
        <TextField label="No runs after" type="datetime-local" value={values.ends_at} onChange={(ends_at) => set({ ends_at })} problem={problemOf("/ends_at")} />
        <TextField label="Runs at most" type="number" value={values.runs_max} onChange={(runs_max) => set({ runs_max })} problem={problemOf("/runs_max")} placeholder="no limit" />
      </div>
    </>
  );
}
