/** Modal dialogs: the browser's own element traps the focus and gives it back. */
import { type ReactNode, useEffect, useId, useRef } from "react";

interface DialogProps {
  title: string;
  wide?: boolean;
  onClose: () => void;
  children: ReactNode;
}

export function Dialog({ title, wide, onClose, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog && !dialog.open) {
      dialog.showModal();
      // What has the focus may stand below; a dialog is read from its title on.
      dialog.scrollTop = 0;
    }
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      className={`dialog${wide ? " is-wide" : ""}`}
      aria-labelledby={titleId}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => {
        if (event.target === element.current) onClose();
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <h2 className="dialog-title" id={titleId}>
        {title}
      </h2>
      <div className="dialog-body">{children}</div>
    </dialog>
  );
}
