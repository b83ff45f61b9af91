/** Terminals of the workspace: shells of the user, and processes of the agent that have one. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { Problem } from "../../api/problem.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { post } from "../../outbox/outbox.ts";
import { Loaded } from "../../forms/loaded.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { complain } from "../../ui/toasts.tsx";
import { Visible } from "../../ui/visible.tsx";
import { NoWorkspace } from "../workspace/no-workspace.tsx";
import { useIsReader } from "../../sharing/owner.ts";
import { OwnersOnly } from "../../sharing/owners-only.tsx";
import type { TabProps } from "../panel.tsx";

type Process = components["schemas"]["Process"];

const SHELL = "exec ${SHELL:-sh}";
const SIZE = { rows: 24, columns: 80 };

/** Processes with a terminal, the oldest first: their places stay while others are added. */
function withTerminal(processes: readonly Process[], shownId: string): Process[] {
  return processes
    .filter((each) => each.stdin_mode === "terminal" && (each.state === "running" || each.id === shownId))
    .toSorted((a, b) => (a.started_at ?? "").localeCompare(b.started_at ?? ""));
}

export default function Terminals({ chat }: TabProps) {
  if (useIsReader(chat)) return <OwnersOnly chat={chat} what="its terminals" />;
  return <OwnTerminals chat={chat} />;
}

function OwnTerminals({ chat }: TabProps) {
  const [chosen, setChosen] = useState("");
  const [held, setHeld] = useState<ReadonlySet<string>>(new Set());
  const [returning, setReturning] = useState<Process | null>(null);
  const queryKey = ["chat", chat.id, "processes"];
  const list = useQuery(
    queryOptions({
      queryKey,
      queryFn: ({ signal }) =>
        answered(api.GET("/api/v1/chats/{chat_id}/processes", { params: { path: { chat_id: chat.id } }, signal })),
      refetchInterval: 3_000,
    }),
  );

  async function open(): Promise<void> {
    try {
      const body = { command: SHELL, terminal: SIZE, background: true };
      const started = await answered(
        api.POST("/api/v1/chats/{chat_id}/processes", { params: { path: { chat_id: chat.id } }, body }),
      );
      await queryClient.invalidateQueries({ queryKey });
      setChosen(started.id);
    } catch (error) {
      complain(error);
    }
  }

  if (list.error instanceof Problem && list.error.status < 500) return <NoWorkspace problem={list.error} />;
  return (
    <Loaded query={list} what="list of terminals">
      {(data) => {
        const terminals = withTerminal(data.items, chosen);
        const shown = terminals.find((each) => each.id === chosen) ?? terminals[0];
        const isAgents = shown !== undefined && shown.chat_id !== null;
        const isHeld = shown !== undefined && held.has(shown.id);
        return (
          <div className="terminals">
            <div className="section-bar">
              {terminals.map((each, place) => (
                <Button key={each.id} small aria-pressed={each.id === shown?.id} onClick={() => setChosen(each.id)}>
                  {each.chat_id === null ? `Shell ${place + 1}` : <Visible>{each.command.slice(0, 24)}</Visible>}
                </Button>
              ))}
              <Button small icon="add" onClick={() => void open()}>
                New terminal
              </Button>
            </div>
            {!shown && <p className="panel-note">No terminal is open. A new one is a shell in the workspace.</p>}
            {shown && isAgents && (
              <div className="section-bar" role="status">
                <span className="panel-note">
                  {isHeld ? "The keyboard is yours." : "This is the agent's process. You are looking only."}
                </span>
                {shown.state === "running" &&
                  (isHeld ? (
                    <Button small onClick={() => setReturning(shown)}>
                      Give it back
                    </Button>
                  ) : (
                    <Button small onClick={() => setHeld(new Set([...held, shown.id]))}>
                      Take over
                    </Button>
                  ))}
              </div>
            )}
            {shown && (
              <iframe
                key={`${shown.id}${isAgents && !isHeld}`}
                className="terminal-frame"
                title={`Terminal: ${isAgents ? shown.command : "shell"}`}
                src={`/terminal?chat_id=${chat.id}&process_id=${shown.id}${isAgents && !isHeld ? "&view_only=true" : ""}`}
              />
            )}
            {returning && (
              <GiveBack
                chatId={chat.id}
                process={returning}
                onClose={() => setReturning(null)}
                onDone={() => {
                  setHeld(new Set([...held].filter((each) => each !== returning.id)));
                  setReturning(null);
                }}
              />
            )}
          </div>
        );
      }}
    </Loaded>
  );
}

interface GiveBackProps {
  chatId: string;
  process: Process;
  onClose: () => void;
  onDone: () => void;
}

/** The keyboard goes back to the agent, with a message that says what was done. */
function GiveBack({ chatId, process, onClose, onDone }: GiveBackProps) {
  const [note, setNote] = useState("");

  async function giveBack(): Promise<void> {
    const text = `I typed into the terminal of process ${process.id} and give it back to you. ${note.trim()}`.trim();
    try {
      await post({ chatId, content: [{ type: "text", text }], busy: "queue", modelId: null, effort: null, mcpServerIds: null });
      onDone();
    } catch (error) {
      complain(error);
    }
  }

  return (
    <Dialog title="Give the keyboard back" onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void giveBack();
        }}
      >
        <label className="field">
          <span className="field-label">What the agent should know</span>
          <textarea autoFocus rows={3} maxLength={4000} value={note} onChange={(event) => setNote(event.target.value)} />
        </label>
        <div className="dialog-actions">
          <Button onClick={onDone}>Without a note</Button>
          <Button look="primary" type="submit" disabled={!note.trim()}>
            Give back and tell
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
