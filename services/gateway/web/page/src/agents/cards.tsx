/** Calls that start agents and wait for them, with links to the agents. */
import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { below, chat as chatQuery } from "../api/queries.ts";
import type { Action } from "../api/types.ts";
import { Card } from "../cards/card.tsx";
import { Problem } from "../cards/execute.tsx";
import { argsOf, type CardProps, cutWords, record, string } from "../cards/outcome.ts";
import { Markdown } from "../markdown/markdown.tsx";
import { money, plural } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { Visible } from "../ui/visible.tsx";
import { AgentRow } from "./tree.tsx";
import { failureWords } from "./words.ts";

type Told = Record<string, unknown>;

/** The agents that a chat waits for, as they stand right now. */
export function AgentsWait({ action }: { action: Action }) {
  const chat = useQuery(chatQuery(action.chat_id)).data;
  const agents = useQuery({ ...below(chat?.root_chat_id ?? ""), enabled: chat !== undefined }).data ?? [];
  const asked = record(action.args).agents;
  const ids = new Set((Array.isArray(asked) ? asked : []).map((each) => string(record(each).agent_id ?? each)));
  const shown = agents.filter((each) => ids.has(each.id) || (ids.size === 0 && each.parent_chat_id === action.chat_id));
  return (
    <div className="action is-quiet" role="group" aria-label="Agents at work">
      <div className="action-head">
        <Icon name="users" />
        <span>Waits for {shown.length > 0 ? plural(shown.length, "agent") : "its agents"}. It goes on by itself.</span>
      </div>
      <ul className="agent-tree">
        {shown.map((each) => (
          <li key={each.id}><AgentRow agent={each} /></li>
        ))}
      </ul>
    </div>
  );
}

const LABELS: Record<string, (args: Told, isOver: boolean) => string> = {
  spawn_agent: (_, isOver) => (isOver ? "Started the agent" : "Starts an agent"),
  wait_agents: (_, isOver) => (isOver ? "Waited for agents" : "Waits for agents"),
  message_agent: () => "Message to the agent",
  interrupt_agent: () => "Stopped the agent",
  list_agents: () => "Looked at its agents",
  list_subagent_models: () => "Looked at the models of agents",
  agent_processes: () => "Looked at processes of an agent",
};

export function AgentCard({ call, result, standing }: CardProps) {
  const args = argsOf(call);
  const told = record(result?.result);
  const listed = Array.isArray(told.agents) ? told.agents.map(record) : [];
  const models = Array.isArray(told.models) ? told.models.map(record) : [];
  const name = string(told.name) || string(args.name);
  const label = LABELS[call.tool_name]?.(args, standing === "done") ?? call.tool_name;
  return (
    <Card
      icon="users"
      standing={standing}
      label={<>{label} {name && <strong><Visible>{name}</Visible></strong>}</>}
      facts={
        <>
          {told.timed_out === true && <span className="badge is-warn">time was over</span>}
          {listed.length > 0 && <span>{plural(listed.length, "agent")}</span>}
        </>
      }
    >
      {string(args.prompt ?? args.message) && <Markdown text={string(args.prompt ?? args.message)} />}
      {string(told.agent_id) && <Link href={`/chats/${string(told.agent_id)}`}>Open the agent</Link>}
      {listed.map((each) => <Report key={string(each.agent_id)} told={each} />)}
      {told.has_more === true && <p className="card-note">{listed.length} of {String(told.total)} agents</p>}
      {models.length > 0 && (
        <ul className="card-note">{models.map((each) => <li key={string(each.model)}><Visible>{string(each.model)}</Visible></li>)}</ul>
      )}
      <Problem told={told} />
    </Card>
  );
}

function Report({ told }: { told: Told }) {
  const cost = told.cost_micros;
  const failure = failureWords(told.error);
  return (
    <div className="agent-report">
      <h4 className="card-heading">
        <Link href={`/chats/${string(told.agent_id)}`}><Visible>{string(told.name) || "Agent"}</Visible></Link>{" "}
        <span className="card-note">
          {string(told.status)}
          {string(told.model) && <> · <Visible>{string(told.model)}</Visible></>}
          {typeof cost === "number" && cost > 0 && ` · ${money(cost)}`}
        </span>
      </h4>
      {string(told.report) && <Markdown text={string(told.report)} />}
      {cutWords(told.cut) && <p className="message-ending">{cutWords(told.cut)}</p>}
      {failure && <p className="card-problem"><Visible>{failure}</Visible></p>}
    </div>
  );
}
