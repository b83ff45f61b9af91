/** The period that figures are about. */
import { SelectField, TextField } from "../forms/fields.tsx";
import { CHOSEN, isChosen, joinedDays, type Period, PERIODS, splitDays } from "./span.ts";

export function PeriodField({ value, onChange }: { value: Period; onChange: (value: Period) => void }) {
  const [first, last] = splitDays(value);
  return (
    <>
      <SelectField
        label="Period"
        value={isChosen(value) ? CHOSEN : value}
        options={PERIODS}
        onChange={(next) => onChange(next === CHOSEN ? joinedDays(first, last) : next)}
      />
      {isChosen(value) && (
        <div className="form-row">
          <TextField label="First day" type="date" value={first} onChange={(day) => onChange(joinedDays(day, last))} />
          <TextField label="Last day" type="date" value={last} onChange={(day) => onChange(joinedDays(first, day))} hint="Days begin at midnight UTC." />
        </div>
      )}
    </>
  );
}
