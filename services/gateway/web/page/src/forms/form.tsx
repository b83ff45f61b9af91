/** A form that is saved: it keeps what was typed when the server refuses it. */
import { type ReactNode, useState } from "react";
import { Problem, wordsOf } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import { say } from "../ui/toasts.tsx";
import "./forms.css";

export interface Saving {
  isBusy: boolean;
  /** What the server said about the form as a whole. */
  problem: string;
  /** What it said about one field of the body, such as `/name`. */
  of: (pointer: string) => string | undefined;
  save: (work: () => Promise<unknown>, done?: string) => Promise<boolean>;
}

export function useSaving(): Saving {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  return {
    isBusy,
    problem: error === undefined ? "" : wordsOf(error),
    of: (pointer) => (error instanceof Problem ? error.field(pointer) : undefined),
    async save(work, done) {
      setBusy(true);
      setError(undefined);
      try {
        await work();
        if (done) say(done);
        return true;
      } catch (caught) {
        setError(caught);
        return false;
      } finally {
        setBusy(false);
      }
    },
  };
}

interface FormProps {
  saving: Saving;
  label?: string;
  disabled?: boolean;
  onSubmit: () => void;
  onCancel?: () => void;
  children: ReactNode;
}

export function Form({ saving, label = "Save", disabled, onSubmit, onCancel, children }: FormProps) {
  return (
    <form
      className="form"
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      {children}
      {saving.problem && (
        <p className="field-problem" role="alert">
          {saving.problem}
        </p>
      )}
      <div className="form-actions">
        <Button look="primary" type="submit" disabled={saving.isBusy || disabled}>
          {saving.isBusy ? "Saving…" : label}
        </Button>
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
      </div>
    </form>
  );
}
