/** What a race is started with: several models, and a command that checks their work. */
import "./races.css";
import { useQuery } from "@tanstack/react-query";
import { models } from "../api/queries.ts";
import { ChecksField, TextField } from "../forms/fields.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { MODELS_MAX, MODELS_MIN } from "./race.ts";

export interface RaceOptions {
  modelIds: readonly string[];
  check: string;
}

export const NO_OPTIONS: RaceOptions = { modelIds: [], check: "" };

/** The fields that say what was refused of them. */
export const RACE_FIELDS: ReadonlySet<string> = new Set(["/models", "/check_command"]);

interface Props {
  options: RaceOptions;
  /** What was refused, by pointer. */
  problemOf: (pointer: string) => string | undefined;
  onChange: (options: RaceOptions) => void;
}

export function RaceFields({ options, problemOf, onChange }: Props) {
  return (
    <section className="card race-options" aria-label="Race">
      <p className="field-hint">
        Each model works on the task in a chat and a copy of the files of its own. You compare what they did, and apply the
        work of one.
      </p>
      <Loaded query={useQuery(models)} what="list of models">
        {({ items }) => {
          const usable = items.filter((each) => each.enabled);
          if (usable.length < MODELS_MIN) {
            return <p className="field-problem" role="alert">A race needs two models, and {usable.length} can be used. An administrator can add more.</p>;
          }
          return (
            <ChecksField
              label={`Models, ${MODELS_MIN} to ${MODELS_MAX}`}
              options={usable.map((each) => [each.id, each.display_name || each.name, each.provider_display_name] as const)}
              chosen={options.modelIds}
              onChange={(modelIds) => onChange({ ...options, modelIds })}
              problem={problemOf("/models")}
            />
          );
        }}
      </Loaded>
      <TextField
        label="Check command"
        value={options.check}
        onChange={(check) => onChange({ ...options, check })}
        problem={problemOf("/check_command")}
        placeholder="make test"
        hint="Runs in the files of each model when it has ended; exit code 0 is a pass. May be empty."
      />
    </section>
  );
}
