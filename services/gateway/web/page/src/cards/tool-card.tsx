/** The card of a tool call, by its tool. A tool without a card of its own has the generic one. */
import { memo } from "react";
import { AgentCard } from "../agents/cards.tsx";
import { bytes } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { McpCard } from "../mcp/tool-card.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { AdvisorCard } from "./advisor.tsx";
import { Card } from "./card.tsx";
import { ExecuteCard, Output, Problem } from "./execute.tsx";
import { ChangeCard, LookCard } from "./files.tsx";
import { TodoCard } from "../todos/card.tsx";
import { argsOf, type CardProps, record, string, toolWords } from "./outcome.ts";
import { WorkspaceCard } from "./workspace.tsx";

type ToolCardProps = CardProps & { chatId: string };

export const ToolCard = memo(function ToolCard(props: ToolCardProps) {
  switch (props.call.tool_name) {
    case "execute":
      return <ExecuteCard {...props} />;
    case "write_file":
    case "edit_files":
    case "apply_patch":
      return <ChangeCard {...props} />;
    case "read_file":
    case "list_files":
    case "find_files":
    case "search_files":
      return <LookCard {...props} />;
    case "process_output":
    case "process_write":
    case "process_signal":
    case "process_list":
      return <ProcessCard {...props} />;
    case "attach_file":
      return <AttachedCard {...props} />;
    case "ask_user_question":
      return <AnsweredCard {...props} />;
    case "propose_plan":
      return <PlanResultCard {...props} />;
    case "spawn_agent":
    case "wait_agents":
    case "message_agent":
    case "interrupt_agent":
    case "list_agents":
    case "list_subagent_models":
    case "agent_processes":
      return <AgentCard {...props} />;
    case "advisor":
      return <AdvisorCard {...props} />;
    case "todo":
      return <TodoCard {...props} />;
    case "create_workspace":
    case "start_workspace":
    case "stop_workspace":
      return <WorkspaceCard {...props} />;
    case "chat_summarized":
      return <SummaryLine {...props} />;
    default:
      if (props.call.mcp_server_id) return <McpCard {...props} />;
      return <GenericCard {...props} />;
  }
});

const PROCESS_LABELS: Record<string, (args: Record<string, unknown>) => string> = {
  process_output: (args) => `Output of process ${short(args.process_id)}`,
  process_write: (args) => `Write to process ${short(args.process_id)}`,
  process_signal: (args) => `${string(args.signal) || "Signal"} process ${short(args.process_id)}`,
  process_list: () => "List processes",
};

function short(id: unknown): string {
  return string(id).slice(-6);
}

function ProcessCard({ call, result, standing }: CardProps) {
  const args = argsOf(call);
  const told = record(result?.result);
  const output = string(told.output ?? result?.result_delta);
  const label = (PROCESS_LABELS[call.tool_name] ?? (() => call.tool_name))(args);
  const code = told.exit_code;
  return (
    <Card
      icon="terminal"
      standing={standing}
      label={label}
      facts={typeof code === "number" && code !== 0 ? <span className="badge is-bad">exit {code}</span> : null}
    >
      {string(args.text) && <div className="terminal-command"><Visible>{string(args.text)}</Visible></div>}
      {output ? <Output text={output} isRunning={standing === "running"} /> : result && !told.error && <Json value={result.result} />}
      {told.running === true && <p className="card-note">It is still running.</p>}
      <Problem told={told} />
    </Card>
  );
}

function AttachedCard({ call, result, standing }: CardProps) {
  const args = argsOf(call);
  const told = record(result?.result);
  const fileId = string(told.file_id);
  return (
    <Card icon="attach" standing={standing} isOpen label={<>Attach <code><Visible>{string(args.name ?? args.path)}</Visible></code></>}>
      {fileId && (
        <a className="button" href={`/api/v1/files/${fileId}`} download={string(told.name)}>
          Download {string(told.name)} {typeof told.size_bytes === "number" && bytes(told.size_bytes)}
        </a>
      )}
      <Problem told={told} />
    </Card>
  );
}

/** A question that was answered, or that ended otherwise. */
function AnsweredCard({ call, result, standing }: CardProps) {
  const questions = argsOf(call).questions;
  const told = record(result?.result);
  const answers = Array.isArray(told.answers) ? told.answers.map(record) : [];
  return (
    <Card icon="question" standing={standing} isOpen={answers.length > 0} label="Question to you">
      <dl className="answers">
        {(Array.isArray(questions) ? questions : []).map((each, index) => (
          <div key={index}>
            <dt>{string(record(each).question)}</dt>
            <dd>{answerText(answers[index]) || string(told.text) || "Not answered."}</dd>
          </div>
        ))}
      </dl>
      <Problem told={told} />
    </Card>
  );
}

function answerText(answer: Record<string, unknown> | undefined): string {
  if (!answer) return "";
  const selected = Array.isArray(answer.selected) ? answer.selected.map(string) : [];
  return [...selected, string(answer.text)].filter(Boolean).join(", ");
}

function PlanResultCard({ call, result, standing }: CardProps) {
  const args = argsOf(call);
  const told = record(result?.result);
  const isOver = result?.outcome !== undefined;
  const words = told.accepted === true ? "accepted" : told.accepted === false ? "refused" : "";
  return (
    <Card
      icon="plan"
      standing={standing}
      isOpen={!isOver && standing !== "waiting"}
      label={`Plan: ${string(args.title)}`}
      facts={words && <span className={`badge ${told.accepted ? "is-accent" : "is-warn"}`}>{words}</span>}
    >
      <Markdown text={string(told.plan) || string(args.plan)} />
      {told.remark ? <p className="card-note">You remarked: {string(told.remark)}</p> : null}
      <Problem told={told} />
    </Card>
  );
}

/** Where the history was summarised: above it the model has the summary alone. */
function SummaryLine({ call, result, standing }: CardProps) {
  const told = record(result?.result);
  const isManual = string(told.source ?? argsOf(call).source) === "manual";
  const words = standing === "running" ? "Summarizing…" : standing === "done" ? "Summarized" : "Could not summarize";
  return (
    <div className="summary-line">
      <div className="summary-rule" role="separator">
        <span>
          {words}
          {isManual && standing === "done" ? " (on request)" : ""}
        </span>
      </div>
      {standing === "running" && <span className="visually-hidden" role="status">Summarizing</span>}
      {result?.outcome && (
        <details>
          <summary>Above this line the model has a summary</summary>
          <Markdown text={string(told.summary)} />
          <Problem told={told} />
        </details>
      )}
    </div>
  );
}

function GenericCard({ call, result, standing }: CardProps) {
  const args = argsOf(call);
  const intent = string(args.model_intent);
  const [server, tool] = call.tool_name.includes("__") ? call.tool_name.split("__", 2) : ["", call.tool_name];
  const told = record(result?.result);
  const progress = result?.progress;
  return (
    <Card
      icon="tool"
      standing={standing}
      isOpen={standing === "failed"}
      label={
        <>
          {intent || toolWords(tool ?? call.tool_name)}
          {server && <span className="card-note"> {server}</span>}
        </>
      }
      facts={
        progress && standing === "running" && (
          <span>
            {progress.total ? `${Math.round((progress.progress / progress.total) * 100)} %` : progress.progress}
            {progress.message ? ` ${progress.message}` : ""}
          </span>
        )
      }
    >
      <h4 className="card-heading">Arguments</h4>
      <Json value={call.args ?? call.args_delta ?? {}} />
      {result?.outcome && !isOnlyProblem(told) && (
        <>
          <h4 className="card-heading">Result</h4>
          <Json value={result.result} />
        </>
      )}
      {!result?.outcome && result?.result_delta && <Output text={result.result_delta} isRunning />}
      {standing === "unknown" && <p className="card-note">It is not known whether this call ran. Look before you repeat it.</p>}
      <Problem told={told} />
    </Card>
  );
}

/** Whether a result has nothing beside why the call failed, which is said in words. */
function isOnlyProblem(told: Record<string, unknown>): boolean {
  return Boolean(told.error) && Object.keys(told).every((each) => PROBLEM_KEYS.has(each));
}

const PROBLEM_KEYS: ReadonlySet<string> = new Set(["ok", "error", "reason", "hint"]);

const JSON_MAX = 40_000;

/** Show a value; only what somebody decides about is whole, however long it is. */
export function Json({ value, isWhole = false }: { value: unknown; isWhole?: boolean }) {
  const text = typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
  const shown = isWhole ? text : text.slice(0, JSON_MAX);
  return (
    <pre className="terminal-output" tabIndex={0}>
      <Visible>{shown}</Visible>
      {shown.length < text.length && `\n… ${(text.length - shown.length).toLocaleString()} more characters`}
    </pre>
  );
}
