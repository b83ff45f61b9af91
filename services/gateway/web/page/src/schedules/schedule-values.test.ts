import { expect, test } from "vitest";
import type { Schedule } from "../api/types.ts";
import { bodyOf, changesOf, isComplete, valuesOf } from "./schedule-values.ts";

const NEW = valuesOf(null, "Europe/Berlin");

test("a repeated schedule begins new chats in its time zone", () => {
  const values = { ...NEW, text: "Look", cron: " 30 9 * * * ", plans: true, runs_max: "3" };
  expect(bodyOf(values)).toEqual({
    text: "Look",
    name: "",
    model_id: null,
    cron: "30 9 * * *",
    time_zone: "Europe/Berlin",
    missed_runs: "skip",
    ends_at: null,
    runs_max: 3,
    workspace_id: null,
    unattended: false,
    mode: "plan",
  });
});

test("a message for one chat at one time has nothing of new chats and of repetitions", () => {
  const values = { ...NEW, text: "Look", repeats: "once" as const, at: "2026-12-24T18:00", chat_id: "c1", plans: true };
  expect(bodyOf(values)).toEqual({ text: "Look", name: "", model_id: null, at: new Date("2026-12-24T18:00").toISOString(), chat_id: "c1" });
});

test("a form is complete with a text and a time", () => {
  expect(isComplete({ ...NEW, text: "Look" })).toBe(false);
  expect(isComplete({ ...NEW, text: "Look", cron: "* * * * *" })).toBe(true);
  expect(isComplete({ ...NEW, text: "Look", repeats: "once", at: "" })).toBe(false);
});

test("a schedule is shown in a form as it is stored", () => {
  const stored = { text: "Look", at: "2026-12-24T18:00:00Z", chat_id: "c1", model_id: "m1", missed_runs: "run_once" } as Schedule;
  const values = valuesOf(stored, "UTC");
  expect(bodyOf(values)).toEqual({ text: "Look", name: "", model_id: "m1", at: "2026-12-24T18:00:00.000Z", chat_id: "c1" });
});

const DAILY = {
  name: "Daily",
  text: "Look",
  cron: "0 8 * * *",
  time_zone: null,
  workspace_id: "w1",
  missed_runs: "run_once",
  mode: "plan",
  ends_at: "2027-01-01T00:00:30Z",
  runs_max: 3,
} as Schedule;

test("a change names only what differs, so that times keep their seconds", () => {
  const before = valuesOf(DAILY, "Europe/Berlin");
  expect(changesOf(before, before)).toEqual({});
  expect(changesOf(before, { ...before, text: "Listen", runs_max: "" })).toEqual({ text: "Listen", runs_max: 0 });
});

test("a stored cron expression without a time zone is shown in UTC", () => {
  expect(valuesOf(DAILY, "Europe/Berlin").time_zone).toBe("UTC");
});

test("a time takes the place of a cron expression with all that belongs to it, and the other way round", () => {
  const before = valuesOf(DAILY, "Europe/Berlin");
  const once = { ...before, repeats: "once" as const, at: "2026-12-24T18:00" };
  const at = new Date("2026-12-24T18:00").toISOString();
  expect(changesOf(before, once)).toEqual({ at, cron: null, time_zone: null, missed_runs: null, ends_at: null, runs_max: 0 });
  expect(changesOf(once, before)).toMatchObject({ at: null, cron: "0 8 * * *", time_zone: "UTC" });
});

test("a schedule that is moved into a chat loses what only new chats have", () => {
  const before = valuesOf(DAILY, "UTC");
  expect(changesOf(before, { ...before, chat_id: "c1" })).toEqual({ chat_id: "c1", workspace_id: null, mode: null });
});
