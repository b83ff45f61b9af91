/** The panel beside a chat: its changes, files and processes, its workspace and what it cost. */
import { type ComponentType, type KeyboardEvent, lazy, Suspense, useEffect, useId } from "react";
import type { Chat } from "../api/types.ts";
import { IconButton } from "../ui/button.tsx";
import { type Pane, Splitter } from "../ui/splitter.tsx";
import { Skeleton } from "../ui/states.tsx";
import { useStored } from "../ui/stored.ts";

export interface TabProps {
  chat: Chat;
}

const TABS: readonly { name: string; title: string; component: ComponentType<TabProps> }[] = [
  { name: "changes", title: "Changes", component: lazy(() => import("./changes.tsx")) },
  { name: "files", title: "Files", component: lazy(() => import("./files.tsx")) },
  { name: "processes", title: "Processes", component: lazy(() => import("./processes.tsx")) },
  { name: "terminals", title: "Terminals", component: lazy(() => import("./terminals.tsx")) },
  { name: "checkpoints", title: "Checkpoints", component: lazy(() => import("./checkpoints.tsx")) },
  { name: "servers", title: "Servers", component: lazy(() => import("../mcp/workspace-servers.tsx")) },
  { name: "agents", title: "Agents", component: lazy(() => import("../agents/tab.tsx")) },
  { name: "goal", title: "Goal", component: lazy(() => import("../goals/tab.tsx")) },
  { name: "context", title: "Context", component: lazy(() => import("./context.tsx")) },
  { name: "workspace", title: "Workspace", component: lazy(() => import("./workspace.tsx")) },
  { name: "summary", title: "Summary", component: lazy(() => import("./summary.tsx")) },
];

interface PanelProps extends TabProps {
  pane: Pane;
  onClose: () => void;
}

export default function Panel({ chat, pane, onClose }: PanelProps) {
  const [stored, setName] = useStored("parley.panel.tab", TABS[0]!.name);
  const id = useId();
  const place = Math.max(0, TABS.findIndex((each) => each.name === stored));
  const { name } = TABS[place]!;
  const Content = TABS[place]!.component;
  useEffect(() => {
    document.getElementById(`${id}-${name}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [id, name]);

  function move(event: KeyboardEvent): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const next = TABS[(place + step + TABS.length) % TABS.length]!;
    setName(next.name);
    document.getElementById(`${id}-${next.name}`)?.focus();
  }

  return (
    <aside className="panel" aria-label="Workspace of the chat">
      <Splitter label="Width of the panel" pane={pane} least={320} most={1200} side="left" />
      <div className="panel-head">
        <div className="tabs" role="tablist" aria-label="Parts of the workspace" onKeyDown={move}>
          {TABS.map((each) => (
            <button
              key={each.name}
              type="button"
              role="tab"
              id={`${id}-${each.name}`}
              aria-selected={each.name === name}
              aria-controls={`${id}-content`}
              tabIndex={each.name === name ? 0 : -1}
              className="tab"
              onClick={() => setName(each.name)}
            >
              {each.title}
            </button>
          ))}
        </div>
        <IconButton icon="close" label="Close the panel" onClick={onClose} />
      </div>
      <div className="panel-body" role="tabpanel" id={`${id}-content`} aria-labelledby={`${id}-${name}`} tabIndex={0}>
        <Suspense fallback={<Skeleton />}>
          <Content chat={chat} />
        </Suspense>
      </div>
    </aside>
  );
}
