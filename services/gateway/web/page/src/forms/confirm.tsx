/** A button that asks before it does something that cannot be taken back. */
import { type ReactNode, useState } from "react";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { useSaving } from "./form.tsx";

interface ConfirmProps {
  label: string;
  title: string;
  text: ReactNode;
  done?: string;
  onConfirm: () => Promise<unknown>;
}

export function ConfirmButton({ label, title, text, done, onConfirm }: ConfirmProps) {
  const [isOpen, open] = useState(false);
  const saving = useSaving();
  return (
    <>
      <Button small look="danger" onClick={() => open(true)}>
        {label}
      </Button>
      {isOpen && (
        <Dialog title={title} onClose={() => open(false)}>
          <div>{text}</div>
          {saving.problem && (
            <p className="field-problem" role="alert">
              {saving.problem}
            </p>
          )}
          <div className="dialog-actions">
            <Button onClick={() => open(false)}>Cancel</Button>
            <Button
              look="danger"
              disabled={saving.isBusy}
              onClick={() => void saving.save(onConfirm, done).then((isDone) => isDone && open(false))}
            >
              {label}
            </Button>
          </div>
        </Dialog>
      )}
    </>
  );
}
