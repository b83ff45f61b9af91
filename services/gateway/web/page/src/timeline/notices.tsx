/** Notices of the installation and of hooks, which the model does not read. */
import type { Part } from "../api/types.ts";
import { Visible } from "../ui/visible.tsx";

export function Notices({ parts }: { parts: readonly Part[] }) {
  return parts.map((part, index) =>
    part.type === "notice" ? (
      <p key={index} className="card-note notice-words">
        {part.hook_name && <strong title={`The hook ${part.hook_name} says this`}><Visible>{part.hook_name}</Visible>: </strong>}
        <Visible>{part.text}</Visible>
      </p>
    ) : null,
  );
}
