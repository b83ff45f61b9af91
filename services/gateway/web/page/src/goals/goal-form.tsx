/** What a chat should achieve, how that is checked, and what it may use for it. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { models } from "../api/queries.ts";
import { AreaField, SelectField, TextField, withStored } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { bodyOf, type Goal, type GoalValues, isComplete, problemsOf, valuesOf } from "./goal-values.ts";
import { modelOptions } from "../models/model-label.ts";

interface Props {
  chatId: string;
  /** The goal that this one takes the place of. */
  before: Goal | null;
  onSet: (goal: Goal) => void;
  onCancel?: () => void;
}

export function GoalForm({ chatId, before, onSet, onCancel }: Props) {
  const [values, setValues] = useState(() => valuesOf(before));
  const [isTried, setTried] = useState(false);
  const saving = useSaving();
  const set = (change: Partial<GoalValues>): void => setValues((was) => ({ ...was, ...change }));
  const problems = isTried ? problemsOf(values) : {};

  function submit(): void {
    setTried(true);
    if (Object.keys(problemsOf(values)).length > 0) return;
    const params = { path: { chat_id: chatId } };
    void saving.save(async () => {
      onSet(await answered(api.PUT("/api/v1/chats/{chat_id}/goal", { params, body: bodyOf(values) })));
    }, "The goal is set.");
  }

  return (
    <Form
      saving={saving}
      label="Set the goal"
      disabled={!isComplete(values)}
      onSubmit={submit}
      {...(onCancel ? { onCancel } : {})}
    >
      <AreaField label="What to achieve" rows={3} value={values.text} onChange={(text) => set({ text })} problem={saving.of("/text")} />
      <Proof values={values} set={set} problemOf={saving.of} />
      <fieldset className="field">
        <legend className="field-label">At most</legend>
        <div className="form-row">
          <TextField label="Turns" type="number" value={values.turns} onChange={(turns) => set({ turns })} problem={problems.turns ?? saving.of("/turns_max")} />
          <TextField label="Minutes" type="number" value={values.minutes} onChange={(minutes) => set({ minutes })} problem={problems.minutes ?? saving.of("/seconds_max")} />
          <TextField
            label="US dollars"
            value={values.dollars}
            onChange={(dollars) => set({ dollars })}
            problem={problems.dollars ?? saving.of("/cost_max_micros")}
            placeholder="no limit"
          />
        </div>
      </fieldset>
    </Form>
  );
}

interface ProofProps {
  values: GoalValues;
  set: (change: Partial<GoalValues>) => void;
  problemOf: (pointer: string) => string | undefined;
}

/** How it is known that the goal is reached. */
function Proof({ values, set, problemOf }: ProofProps) {
  const known = (useQuery(models).data?.items ?? []).filter((each) => each.enabled || each.id === values.judge_model_id);
  const judges = modelOptions(known);
  return (
    <>
      <TextField
        label="Check command"
        value={values.check_command}
        onChange={(check_command) => set({ check_command })}
        problem={problemOf("/check_command")}
        placeholder="make test"
        hint="Runs in the workspace after each turn, and passes with exit code 0. May be empty if a model judges."
      />
      <SelectField
        label="Judge"
        value={values.judge_model_id}
        options={withStored([["", "None: the check decides"], ...judges], values.judge_model_id)}
        onChange={(judge_model_id) => set({ judge_model_id })}
        problem={problemOf("/judge_model_id")}
        hint="A model that says whether the goal is reached: after each turn, or with a check command once that passed."
      />
    </>
  );
}
