/** The period that figures are about. */
import { SelectField } from "../forms/fields.tsx";

const DAY = 86_400_000;
export const PERIODS = [
  ["7", "The last 7 days"],
  ["30", "The last 30 days"],
  ["90", "The last 90 days"],
  ["365", "The last year"],
] as const;

export type Period = (typeof PERIODS)[number][0];

/** Return when a period begins, by the day, so that the answer can be kept. */
export function startOf(period: Period, now = Date.now()): string {
  const midnight = new Date(now).setUTCHours(0, 0, 0, 0);
  return new Date(midnight - Number(period) * DAY).toISOString();
}

export function PeriodField({ value, onChange }: { value: Period; onChange: (value: Period) => void }) {
  return <SelectField label="Period" value={value} options={PERIODS} onChange={onChange} />;
}
