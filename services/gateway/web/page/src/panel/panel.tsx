/** The panel beside a chat: its changes, files and processes, its workspace and what it cost. */
import { type ComponentType, type KeyboardEvent, lazy, memo, Suspense, useEffect, useId, useSyncExternalStore } from "react";
import type { Chat } from "../api/types.ts";
import { IconButton } from "../ui/button.tsx";
import { Menu, MenuItem } from "../ui/menu.tsx";
import { type Pane, Splitter } from "../ui/splitter.tsx";
import { Skeleton } from "../ui/states.tsx";
import { expandPanel, panelExpanded } from "./tabs/panel-state.ts";
import { changeTabs, panelTabs, tabsOf } from "./tabs/panel-tabs.ts";
import { changeOrder, ordered, tabOrder, withMoved } from "./tabs/tab-order.ts";

export interface TabProps {
  chat: Chat;
}

const TABS: readonly { name: string; title: string; component: ComponentType<TabProps> }[] = [
  { name: "changes", title: "Changes", component: lazy(() => import("./changes.tsx")) },
  { name: "files", title: "Files", component: lazy(() => import("./files/files.tsx")) },
  { name: "processes", title: "Processes", component: lazy(() => import("./processes/processes.tsx")) },
  { name: "terminals", title: "Terminals", component: lazy(() => import("./processes/terminals.tsx")) },
  { name: "checkpoints", title: "Checkpoints", component: lazy(() => import("./files/checkpoints.tsx")) },
  { name: "servers", title: "Servers", component: lazy(() => import("../mcp/workspace/tab.tsx")) },
  { name: "agents", title: "Agents", component: lazy(() => import("../agents/tab.tsx")) },
  { name: "goal", title: "Goal", component: lazy(() => import("../goals/tab.tsx")) },
  { name: "context", title: "Context", component: lazy(() => import("./context/context.tsx")) },
  { name: "workspace", title: "Workspace", component: lazy(() => import("./workspace/workspace.tsx")) },
  { name: "summary", title: "Summary", component: lazy(() => import("./summary.tsx")) },
  { name: "debug", title: "Debug", component: lazy(() => import("../turns/debug.tsx")) },
];

const DRAGGED = "application/x-parley-tab";

interface PanelProps extends TabProps {
  pane: Pane;
  onClose: () => void;
}

function Panel({ chat, pane, onClose }: PanelProps) {
  const kept = tabsOf(useSyncExternalStore(panelTabs.subscribe, panelTabs.get), chat.id);
  const all = ordered(TABS, useSyncExternalStore(tabOrder.subscribe, tabOrder.get));
  const isExpanded = useSyncExternalStore(panelExpanded.subscribe, panelExpanded.get);
  const shown = shownTabs(all, kept.hidden);
  const id = useId();
  const place = Math.max(0, shown.findIndex((each) => each.name === kept.open));
  const { name, component: Content } = shown[place]!;
  useEffect(() => {
    document.getElementById(`${id}-${name}`)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [id, name]);

  function open(tab: string): void {
    changeTabs({ ...kept, open: tab });
  }

  /** Put a tab away, or show it again and open it. */
  function toggle(tab: string): void {
    if (kept.hidden.includes(tab)) changeTabs({ ...kept, open: tab, hidden: kept.hidden.filter((each) => each !== tab) });
    else changeTabs({ ...kept, hidden: [...kept.hidden, tab] });
  }

  /** Put a tab at the place of another one. */
  function put(tab: string, to: string): void {
    // A chat without a tab of its own has the first one open, which may be another one then.
    if (kept.open !== name) open(name);
    changeOrder(withMoved(all.map((each) => each.name), tab, to));
  }

  function move(event: KeyboardEvent): void {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    const next = shown[(place + step + shown.length) % shown.length]!;
    if (event.altKey) return put(name, next.name);
    open(next.name);
    document.getElementById(`${id}-${next.name}`)?.focus();
  }

  return (
    <aside className="panel" aria-label="Workspace of the chat">
      <Splitter label="Width of the panel" pane={pane} least={320} most={1200} side="left" />
      <div className="panel-head">
        <div className="tabs" role="tablist" aria-label="Parts of the workspace" onKeyDown={move}>
          {shown.map((each) => (
            <button
              key={each.name}
              type="button"
              role="tab"
              id={`${id}-${each.name}`}
              aria-selected={each.name === name}
              aria-controls={`${id}-content`}
              tabIndex={each.name === name ? 0 : -1}
              className="tab"
              title="Drag, or Alt with the arrow keys, to move the tab"
              draggable
              onDragStart={(event) => event.dataTransfer.setData(DRAGGED, each.name)}
              onDragOver={(event) => {
                if (event.dataTransfer.types.includes(DRAGGED)) event.preventDefault();
              }}
              onDrop={(event) => {
                const dragged = event.dataTransfer.getData(DRAGGED);
                if (!dragged) return;
                event.preventDefault();
                put(dragged, each.name);
              }}
              onClick={() => open(each.name)}
            >
              {each.title}
            </button>
          ))}
        </div>
        <Menu label="Tabs" button={(attributes) => <IconButton icon="list" label="Choose the tabs" {...attributes} />}>
          {all.map((each) => {
            const isShown = shown.includes(each);
            return (
              <MenuItem key={each.name} checked={isShown} isToggle disabled={isShown && shown.length === 1} onChoose={() => toggle(each.name)}>
                {each.title}
              </MenuItem>
            );
          })}
        </Menu>
        <IconButton
          icon="expand"
          className="panel-expand"
          label={isExpanded ? "Show the chat beside the panel" : "Give the panel all the place"}
          aria-pressed={isExpanded}
          onClick={() => expandPanel(!isExpanded)}
        />
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

// The chat beside it is rendered with every piece of an answer.
export default memo(Panel);

/** The tabs that are not put away; if all are, the first one is shown. */
function shownTabs(all: typeof TABS, hidden: readonly string[]): typeof TABS {
  const shown = all.filter((each) => !hidden.includes(each.name));
  return shown.length ? shown : all.slice(0, 1);
}
