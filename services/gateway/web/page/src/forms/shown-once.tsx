/** A value that the server shows once: copied now or never. */
import { useState } from "react";
import { Button } from "../ui/button.tsx";
import { Notice } from "../ui/states.tsx";

interface ShownOnceProps {
  title: string;
  value: string;
  onClose: () => void;
}

export function ShownOnce({ title, value, onClose }: ShownOnceProps) {
  const [isCopied, setCopied] = useState(false);
  return (
    <Notice
      kind="warn"
      icon="key"
      title={title}
      actions={
        <Button small onClick={onClose}>
          Done
        </Button>
      }
    >
      <p>It is shown only now. Copy it to where it is needed.</p>
      <p className="once">
        <code className="once-value">{value}</code>
        <Button
          small
          icon={isCopied ? "check" : "copy"}
          onClick={() => void navigator.clipboard?.writeText(value).then(() => setCopied(true))}
        >
          {isCopied ? "Copied" : "Copy"}
        </Button>
      </p>
    </Notice>
  );
}
