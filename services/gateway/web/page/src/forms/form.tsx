/** A form that is saved: it keeps what was typed when the server refuses it. */
import { type ReactNode, useState } from "react";
import { Problem, wordsBeside } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import { say } from "../ui/toasts.tsx";
import "./forms.css";

export interface Saving {
  isBusy: boolean;
  /** What the server said about the form, without what was asked for by `of` while this was rendered. */
  readonly problem: string;
  /** What it said about one field of the body, such as `/name`. */
  of: (pointer: string) => string | undefined;
  save: (work: () => Promise<unknown>, done?: string) => Promise<boolean>;
}

export function useSaving(): Saving {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const atFields = new Set<string>();
  return {
    isBusy,
    // Read after the fields asked, which may be rendered by components of their own.
    get problem() {
      return error === undefined ? "" : wordsBeside(error, atFields);
    },
    of(pointer) {
      atFields.add(pointer);
      return error instanceof Problem ? error.field(pointer) : undefined;
    },
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

/** What no field says; rendered after the fields, so that they have asked. */
function Rest({ saving }: { saving: Saving }) {
  const { problem } = saving;
  return problem && <p className="field-problem" role="alert">{problem}</p>;
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
      <Rest saving={saving} />
      <div className="form-actions">
        <Button look="primary" type="submit" disabled={saving.isBusy || disabled}>
          {saving.isBusy ? "Saving…" : label}
        </Button>
        {onCancel && <Button onClick={onCancel}>Cancel</Button>}
      </div>
    </form>
  );
}
