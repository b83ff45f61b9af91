/** The processes of the workspace, with their output and signals, and the monitors of the chat. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { answered, api } from "../../api/client.ts";
import { Problem } from "../../api/problem.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { Output } from "../../cards/execute.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Monitors } from "../../monitors/list.tsx";
import { useProcessOutput } from "../../stream/process-outputs.ts";
import { Button } from "../../ui/button.tsx";
import { ago, duration } from "../../ui/format.ts";
import { Skeleton } from "../../ui/states.tsx";
import { complain } from "../../ui/toasts.tsx";
import { Visible } from "../../ui/visible.tsx";
import { NoWorkspace } from "../workspace/no-workspace.tsx";
import { useIsReader } from "../../sharing/owner.ts";
import type { TabProps } from "../panel.tsx";

type Process = components["schemas"]["Process"];

export default function Processes(props: TabProps) {
  return (
    <>
      <Monitors chat={props.chat} />
      <List {...props} />
    </>
  );
}

function List({ chat }: TabProps) {
  const isReader = useIsReader(chat);
  const [shown, setShown] = useState("");
  const list = useQuery(
    queryOptions({
      queryKey: ["chat", chat.id, "processes"],
      queryFn: ({ signal }) =>
        answered(api.GET("/api/v1/chats/{chat_id}/processes", { params: { path: { chat_id: chat.id } }, signal })),
      refetchInterval: 3_000,
    }),
  );
  if (list.error instanceof Problem && list.error.status < 500) return <NoWorkspace problem={list.error} />;
  return (
    <Loaded query={list} what="list of processes">
      {(data) => (
        <>
          {data.items.length === 0 && <p className="panel-note">Nothing runs, and nothing ran lately.</p>}
          {data.items.map((each) => (
            <section key={each.id} className="panel-part" aria-label={each.command}>
              <div className="section-bar">
                <code className="entry-name">
                  <Visible>{each.command}</Visible>
                </code>
                <span className={`badge${each.state === "running" ? " is-accent" : isBad(each) ? " is-bad" : ""}`}>
                  {stateOf(each)}
                </span>
              </div>
              <div className="table-actions">
                <span className="panel-note">
                  {each.state === "running" ? `since ${ago(each.started_at, Date.now())}` : duration(each.wall_duration_ms)}
                </span>
                <Button small aria-expanded={shown === each.id} onClick={() => setShown(shown === each.id ? "" : each.id)}>
                  Output
                </Button>
                {!isReader && each.state === "running" && <Stop chatId={chat.id} processId={each.id} />}
              </div>
              {shown === each.id && <ProcessOutput chatId={chat.id} process={each} />}
            </section>
          ))}
        </>
      )}
    </Loaded>
  );
}

function stateOf(process: Process): string {
  if (process.state !== "exited") return process.state ?? "unknown";
  const { exit } = process;
  if (exit?.oom_killed) return "out of memory";
  if (exit?.timed_out) return "timed out";
  return exit?.signal ? exit.signal : `exit ${exit?.exit_code ?? "unknown"}`;
}

function isBad(process: Process): boolean {
  return process.state !== "exited" || process.exit?.exit_code !== 0;
}

function Stop({ chatId, processId }: { chatId: string; processId: string }) {
  async function stop(): Promise<void> {
    const params = { path: { chat_id: chatId, process_id: processId } };
    const body = { signal: "terminate" as const, escalate_after_ms: 5_000 };
    await answered(api.POST("/api/v1/chats/{chat_id}/processes/{process_id}/signal", { params, body })).catch(complain);
    await queryClient.invalidateQueries({ queryKey: ["chat", chatId, "processes"] });
  }

  return (
    <Button small look="danger" onClick={() => void stop()}>
      Stop
    </Button>
  );
}

/** The output of a process: its beginning and end at first, then what comes, as it comes. */
function ProcessOutput({ chatId, process }: { chatId: string; process: Process }) {
  const output = useProcessOutput(process.id);
  const isOver = output?.isOver ?? false;
  useEffect(() => {
    if (isOver) void queryClient.invalidateQueries({ queryKey: ["chat", chatId, "processes"] });
  }, [chatId, isOver]);
  const { text = null, problem = null } = output ?? {};
  const isRunning = !isOver && (process.state === "running" || process.state === "starting");
  if (problem) return <p className="field-problem">{problem}</p>;
  if (text === null) return <Skeleton />;
  return text || isRunning ? <Output text={text} isRunning={isRunning} /> : <p className="panel-note">No output.</p>;
}
