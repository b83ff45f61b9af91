/** What a chat asks of its owner, as its readers see it: without anything to answer with. */
import type { ReactNode } from "react";
import type { Action } from "../../api/types.ts";
import { Markdown } from "../../markdown/markdown.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Visible } from "../../ui/visible.tsx";
import { ApprovalFacts } from "./approval-facts.tsx";
import { record, string } from "../outcome.ts";
import { questionsOf } from "./questions.ts";

interface Props {
  action: Action;
  owner: string;
}

export function AskedOfOwner({ action, owner }: Props) {
  return (
    <div className="action" role="group" aria-label="Asked of the owner">
      <Asked action={action} />
      <p className="card-note" role="status">Waits for <Visible>{owner}</Visible></p>
    </div>
  );
}

function Asked({ action }: { action: Action }): ReactNode {
  const args = record(action.args);
  switch (action.kind) {
    case "approval":
    case "loop":
      return <ApprovalFacts action={action} />;
    case "plan":
      return (
        <>
          <div className="action-head">
            <Icon name="plan" />
            <span>Plan: {string(args.title)}</span>
          </div>
          <div className="action-plan"><Markdown text={string(args.plan)} /></div>
        </>
      );
    case "question":
      return questionsOf(action).map(({ header, question, options }, index) => (
        <section key={index}>
          <div className="action-head">
            <Icon name="question" />
            <span>{header || "Question"}</span>
          </div>
          <p className="action-question">{question}</p>
          <ul>{options.map(({ label }) => <li key={label}>{label}</li>)}</ul>
        </section>
      ));
    default:
      return (
        <>
          <div className="action-head">
            <Icon name={action.kind === "login" ? "key" : "question"} />
            <span>
              {action.kind === "login" ? "A server needs a login for" : "A server asks in"} <code><Visible>{action.tool_name}</Visible></code>
            </span>
          </div>
          {args.message ? <p className="mcp-text"><Visible>{string(args.message)}</Visible></p> : null}
        </>
      );
  }
}
