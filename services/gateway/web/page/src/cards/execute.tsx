import { use, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { answered, api } from "../api/client.ts";
import { opensBy, useDisplayMode } from "../display/modes.ts";
import { isProcessId } from "../stream/output-state.ts";
import { noSubscription, OutputsContext, useProcessOutput } from "../stream/process-outputs.ts";
import { Button } from "../ui/button.tsx";
import { duration } from "../ui/format.ts";
import { complain } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { CopyButton } from "../markdown/code.tsx";
import { spansOf } from "./ansi.ts";
import { Card } from "./card.tsx";
import { argsOf, type CardProps, record, string } from "./outcome.ts";

const OUTPUT_MAX = 60_000;

/** A command, with its output as it comes. */
export function ExecuteCard({ call, result, standing, chatId }: CardProps & { chatId: string }) {
  const args = argsOf(call);
  const told = record(result?.result);
  const command = string(args.command);
  const output = string(told.output ?? result?.result_delta);
  const intent = string(args.model_intent);
  const processId = result?.process_id ?? string(told.process_id);
  const first = command.split("\n")[0] ?? "";
  const mode = useDisplayMode("output");
  return (
    <Card
      icon="terminal"
      standing={standing}
      isOpen={opensBy(mode, standing !== "done" || output.length > 0 || told.running === true)}
      label={intent ? intent : <code><Visible>{first || "…"}</Visible></code>}
      facts={<ExecuteFacts told={told} />}
    >
      <div className="terminal">
        <div className="terminal-command">
          <span aria-hidden="true">$ </span>
          <Visible>{command}</Visible>
          <CopyButton text={() => command} label="Copy the command" />
        </div>
        {told.running === true && processId ? (
          <BackgroundOutput chatId={chatId} processId={processId} told={output} />
        ) : (
          <Output text={output} isRunning={standing === "running"} />
        )}
        <Problem told={told} />
        {standing === "running" && processId && <StopButton chatId={chatId} processId={processId} />}
        {standing === "unknown" && (
          <p className="card-note">It is not known whether this command ran. Look before you repeat it.</p>
        )}
      </div>
    </Card>
  );
}

interface BackgroundProps {
  chatId: string;
  processId: string;
  /** The output when the call returned. */
  told: string;
}

/** The output of a command that went on in the background, followed on demand. */
function BackgroundOutput({ chatId, processId, told }: BackgroundProps) {
  const outputs = use(OutputsContext);
  const chosen = useSyncExternalStore(outputs?.chosen.subscribe ?? noSubscription, () => outputs?.chosen.get());
  const canFollow = outputs !== null && isProcessId(processId);
  if (chosen?.has(processId)) {
    return <FollowedOutput chatId={chatId} processId={processId} told={told} onEnd={() => outputs?.choose(processId, false)} />;
  }
  return (
    <>
      <Output text={told} isRunning={false} />
      <p className="card-note">It went on in the background.</p>
      {canFollow && (
        <Button small onClick={() => outputs.choose(processId, true)}>
          Follow
        </Button>
      )}
    </>
  );
}

function FollowedOutput({ chatId, processId, told, onEnd }: BackgroundProps & { onEnd: () => void }) {
  const output = useProcessOutput(processId);
  const isOver = output?.isOver ?? false;
  const exit = output?.process?.exit;
  return (
    <>
      <Output text={output?.text ?? told} isRunning={!isOver} />
      {output?.problem && <p className="card-problem">{output.problem}</p>}
      {output?.process && (
        <p className="card-note">
          {exit ? `It ended with ${exit.signal ?? `exit code ${exit.exit_code}`}.` : "It is not running any more."}
        </p>
      )}
      {!isOver && <StopButton chatId={chatId} processId={processId} />}
      <Button small onClick={onEnd}>
        Stop following
      </Button>
    </>
  );
}

function ExecuteFacts({ told }: { told: Record<string, unknown> }) {
  const code = told.exit_code;
  const signal = string(told.signal);
  return (
    <>
      {typeof told.wall_duration_ms === "number" && <span>{duration(told.wall_duration_ms)}</span>}
      {typeof code === "number" && code !== 0 && <span className="badge is-bad">exit {code}</span>}
      {signal && <span className="badge is-bad">{signal}</span>}
      {told.sandbox === "none" && <span className="badge is-warn">no sandbox</span>}
    </>
  );
}

/** Why a call failed, and what to do. */
export function Problem({ told }: { told: Record<string, unknown> }) {
  if (!told.error) return null;
  return (
    <p className="card-problem">
      {string(told.error)} {told.hint ? <span className="card-hint">{string(told.hint)}</span> : null}
    </p>
  );
}

/** Output with its colours, which is followed to its end while it grows. */
export function Output({ text, isRunning }: { text: string; isRunning: boolean }) {
  const element = useRef<HTMLPreElement>(null);
  const [follows, setFollows] = useState(true);
  const shown = text.length > OUTPUT_MAX ? text.slice(-OUTPUT_MAX) : text;
  useEffect(() => {
    const pre = element.current;
    if (pre && isRunning && follows) pre.scrollTop = pre.scrollHeight;
  }, [shown, isRunning, follows]);
  if (!text) return isRunning ? <p className="card-note">No output yet.</p> : null;
  return (
    <>
      {shown !== text && <p className="card-note">The end of {text.length.toLocaleString()} characters:</p>}
      <pre
        ref={element}
        className="terminal-output"
        tabIndex={0}
        aria-label="Output"
        onScroll={(event) => {
          const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
          setFollows(scrollHeight - scrollTop - clientHeight < 24);
        }}
      >
        {spansOf(shown).map((span, index) =>
          span.classes ? <span key={index} className={span.classes}>{span.text}</span> : span.text,
        )}
      </pre>
      {isRunning && !follows && <Button small onClick={() => setFollows(true)}>Follow</Button>}
    </>
  );
}

function StopButton({ chatId, processId }: { chatId: string; processId: string }) {
  async function stop(): Promise<void> {
    try {
      await answered(
        api.POST("/api/v1/chats/{chat_id}/processes/{process_id}/signal", {
          params: { path: { chat_id: chatId, process_id: processId } },
          body: { signal: "interrupt", escalate_after_ms: 5000 },
        }),
      );
    } catch (error) {
      complain(error);
    }
  }
  return (
    <Button small icon="stop" onClick={() => void stop()}>
      Stop this command
    </Button>
  );
}
