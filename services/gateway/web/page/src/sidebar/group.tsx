/** A group of the list of chats, with a heading that closes and opens it. */
import { type ReactNode, useId, useSyncExternalStore } from "react";
import { Icon } from "../ui/icon.tsx";
import { closedGroups, toggleGroup } from "./closed-groups.ts";

interface Props {
  title: string;
  /** How many chats it has; said while they are not shown. */
  count: number;
  onDrop: (event: React.DragEvent) => void;
  children: ReactNode;
}

export function ChatGroup({ title, count, onDrop, children }: Props) {
  const id = useId();
  const isClosed = useSyncExternalStore(closedGroups.subscribe, closedGroups.get).includes(title);
  return (
    <section
      aria-label={title}
      onDragOver={(event) => {
        if (event.dataTransfer.types.includes("application/x-parley-chat")) event.preventDefault();
      }}
      onDrop={onDrop}
    >
      <h2 className="side-group">
        <button type="button" className="side-group-button" aria-expanded={!isClosed} aria-controls={id} onClick={() => toggleGroup(title)}>
          <span className={`side-group-chevron${isClosed ? "" : " is-open"}`}><Icon name="chevron" /></span>
          {title}
          {isClosed && <span className="side-group-count">{count}</span>}
        </button>
      </h2>
      <ul className="side-rows" id={id} hidden={isClosed}>
        {isClosed ? null : children}
      </ul>
    </section>
  );
}
