/** Periods by the day, so that the figures of one can be kept. */
const DAY_MS = 86_400_000;
/** Times from then on have years of five digits. */
const DAYS_END_MS = Date.UTC(10_000, 0);

/** The choice of two days. */
export const CHOSEN = "chosen";
/** So many days until now, by what is shown for it. */
export const PERIODS: readonly (readonly [Period, string])[] = [
  ["7", "The last 7 days"],
  ["30", "The last 30 days"],
  ["90", "The last 90 days"],
  ["365", "The last year"],
  [CHOSEN, "Chosen days"],
];
export const USUAL: Period = "30";

/** A number of days until now, or two days with `..` between them. */
export type Period = string;

export function isChosen(period: Period): boolean {
  return period.includes("..");
}

/** Return the first and the last day of a period. */
export function splitDays(period: Period, now = Date.now()): [string, string] {
  const [first = "", last = ""] = period.split("..");
  return isChosen(period) ? [first, last] : [dayOf(midnight(now) - Number(period) * DAY_MS), dayOf(now)];
}

/** Return the period of two days as they are typed; while they are, the last may come before the first. */
export function joinedDays(first: string, last: string): Period {
  return `${first}..${last}`;
}

/**
 * Return when a period begins, and when it ends unless that is now. Two days bound it in whichever order
 * they are; a day that is not chosen yet, or is none, bounds nothing.
 */
export function spanOf(period: Period, now = Date.now()): { start?: string; end?: string } {
  if (!isChosen(period)) return { start: new Date(midnight(now) - Number(period) * DAY_MS).toISOString() };
  const typed = splitDays(period).map(timeOf);
  const [first, last] = typed.includes(null) ? typed : typed.toSorted((one, other) => one! - other!);
  return {
    ...(first != null ? { start: new Date(first).toISOString() } : {}),
    ...(last != null ? { end: new Date(last + DAY_MS).toISOString() } : {}),
  };
}

/** Return when a day begins; null if it is none. Years of more digits are on the way to another one. */
function timeOf(day: string): number | null {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(day) ? Date.parse(day) : Number.NaN;
  return time < DAYS_END_MS - DAY_MS ? time : null;
}

function midnight(time: number): number {
  return new Date(time).setUTCHours(0, 0, 0, 0);
}

function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
