/** What the form of a schedule holds, and the request that it becomes. */
import type { components } from "../api/schema.d.ts";
import type { ReasoningEffort, Schedule } from "../api/types.ts";

type Body = components["schemas"]["CreateScheduleBody"];
export type Changes = components["schemas"]["UpdateScheduleBody"];
type MissedRuns = components["schemas"]["MissedRuns"];

export interface ScheduleValues {
  name: string;
  text: string;
  repeats: "cron" | "once";
  /** Local time as the browser's field has it. */
  at: string;
  cron: string;
  time_zone: string;
  /** The chat that gets the messages; empty for a new one for each run. */
  chat_id: string;
  model_id: string;
  effort: ReasoningEffort | "";
  workspace_id: string;
  plans: boolean;
  unattended: boolean;
  missed_runs: MissedRuns;
  ends_at: string;
  runs_max: string;
}

/** The values of a form: those of a schedule that exists, or of a new one in a time zone. */
export function valuesOf(schedule: Schedule | null, zone: string): ScheduleValues {
  return {
    name: schedule?.name ?? "",
    text: schedule?.text ?? "",
    repeats: schedule?.at ? "once" : "cron",
    at: localTime(schedule?.at ?? null),
    cron: schedule?.cron ?? "",
    // Without a time zone a cron expression is in UTC.
    time_zone: schedule?.time_zone ?? (schedule?.cron ? "UTC" : zone),
    chat_id: schedule?.chat_id ?? "",
    model_id: schedule?.model_id ?? "",
    effort: schedule?.reasoning_effort ?? "",
    workspace_id: schedule?.workspace_id ?? "",
    plans: schedule?.mode === "plan",
    unattended: schedule?.unattended ?? false,
    missed_runs: schedule?.missed_runs ?? "skip",
    ends_at: localTime(schedule?.ends_at ?? null),
    runs_max: schedule?.runs_max ? String(schedule.runs_max) : "",
  };
}

/** A time as a field for local times has it. */
function localTime(at: string | null): string {
  if (!at) return "";
  const time = new Date(at);
  return new Date(time.getTime() - time.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function instant(local: string): string | null {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}

/** Whether enough was typed to ask the server. */
export function isComplete(values: ScheduleValues): boolean {
  return values.text.trim() !== "" && (values.repeats === "cron" ? values.cron.trim() !== "" : instant(values.at) !== null);
}

export function bodyOf(values: ScheduleValues): Body {
  const when: Partial<Body> =
    values.repeats === "once"
      ? { at: instant(values.at) }
      : {
          cron: values.cron.trim(),
          time_zone: values.time_zone.trim(),
          missed_runs: values.missed_runs,
          ends_at: instant(values.ends_at),
          runs_max: Number(values.runs_max || 0),
        };
  // What only new chats have is not sent for a chat that exists.
  const where: Partial<Body> = values.chat_id
    ? { chat_id: values.chat_id }
    : {
        workspace_id: values.workspace_id || null,
        unattended: values.unattended,
        ...(values.plans ? { mode: "plan" as const } : {}),
      };
  return {
    text: values.text,
    name: values.name.trim(),
    model_id: values.model_id || null,
    ...(values.effort ? { reasoning_effort: values.effort } : {}),
    ...when,
    ...where,
  };
}

/** All that a schedule says, with null for what it does not have. */
function wholeOf(values: ScheduleValues): Changes {
  const repeats = values.repeats === "cron";
  const isNew = !values.chat_id;
  return {
    text: values.text,
    name: values.name.trim(),
    model_id: values.model_id || null,
    reasoning_effort: values.effort || null,
    at: repeats ? null : instant(values.at),
    cron: repeats ? values.cron.trim() : null,
    time_zone: repeats ? values.time_zone.trim() : null,
    missed_runs: repeats ? values.missed_runs : null,
    ends_at: repeats ? instant(values.ends_at) : null,
    runs_max: repeats ? Number(values.runs_max || 0) : 0,
    chat_id: values.chat_id || null,
    workspace_id: isNew ? values.workspace_id || null : null,
    unattended: isNew && values.unattended,
    mode: isNew && values.plans ? "plan" : null,
  };
}

/** The fields that differ from those that the form was opened with; the others stay as they are stored. */
export function changesOf(before: ScheduleValues, after: ScheduleValues): Changes {
  const was = wholeOf(before) as Record<string, unknown>;
  return Object.fromEntries(Object.entries(wholeOf(after)).filter(([name, value]) => value !== was[name]));
}
