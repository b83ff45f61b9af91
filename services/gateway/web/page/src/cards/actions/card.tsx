/** What a chat asks of a person: questions, plans, permission for exactly one call, and what servers of tools ask. */
import { useId, useState } from "react";
import { AgentsWait } from "../../agents/cards.tsx";
import type { Action } from "../../api/types.ts";
import { Button } from "../../ui/button.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Visible } from "../../ui/visible.tsx";
import { Markdown } from "../../markdown/markdown.tsx";
import { ElicitationCard } from "../../elicitations/card.tsx";
import { LoginCard } from "../../mcp/login-card.tsx";
import { useOtherOwner } from "../../sharing/owner.ts";
import { useAnswer } from "./answering.ts";
import { ApprovalFacts } from "./approval-facts.tsx";
import { AskedOfOwner } from "./asked-of-owner.tsx";
import { record, string } from "../outcome.ts";
import { questionsOf } from "./questions.ts";
import { Json } from "../tool-card.tsx";

/** The kinds that the owner of the chat answers. */
const ASKS_OWNER: ReadonlySet<Action["kind"]> = new Set(["question", "plan", "approval", "loop", "login", "elicitation"]);

export function ActionCard({ action }: { action: Action }) {
  const owner = useOtherOwner(action.chat_id);
  if (owner !== null && ASKS_OWNER.has(action.kind)) return <AskedOfOwner action={action} owner={owner} />;
  switch (action.kind) {
    case "question":
      return <QuestionCard action={action} />;
    case "plan":
      return <PlanCard action={action} />;
    case "approval":
    case "loop":
      return <ApprovalCard action={action} />;
    case "elicitation":
      return <ElicitationCard action={action} />;
    case "login":
      return <LoginCard action={action} />;
    case "agents":
      return <AgentsWait action={action} />;
    default:
      return <ClientToolCard action={action} />;
  }
}

/** Questions one after the other; the last step sends all answers. */
function QuestionCard({ action }: { action: Action }) {
  const questions = questionsOf(action);
  const [step, setStep] = useState(0);
  const [chosen, setChosen] = useState<string[][]>(() => questions.map(() => []));
  const [texts, setTexts] = useState<string[]>(() => questions.map(() => ""));
  const { answer, problem, isBusy } = useAnswer(action);
  const name = useId();
  const question = questions[step];
  if (!question) return null;
  const selected = chosen[step] ?? [];
  const text = texts[step] ?? "";
  const isLast = step === questions.length - 1;
  const isAnswered = selected.length > 0 || text.trim() !== "";

  function choose(label: string, isOn: boolean): void {
    const next = question?.isMultiple
      ? isOn ? [...selected, label] : selected.filter((each) => each !== label)
      : [label];
    setChosen(chosen.with(step, next));
  }

  function submit(): void {
    if (!isLast) return setStep(step + 1);
    const answers = questions.map((_, index) => ({
      ...(chosen[index]?.length ? { selected: chosen[index] } : {}),
      ...(texts[index]?.trim() ? { text: texts[index].trim() } : {}),
    }));
    void answer({ answers });
  }

  return (
    <form
      className="action"
      role="group"
      aria-label="Question"
      onSubmit={(event) => {
        event.preventDefault();
        if (isAnswered) submit();
      }}
    >
      <div className="action-head">
        <Icon name="question" />
        <span>{question.header || "Question"}</span>
        {questions.length > 1 && <span className="badge">{step + 1} of {questions.length}</span>}
      </div>
      <fieldset className="choices">
        <legend className="action-question">{question.question}</legend>
        {question.options.map((option) => (
          <label key={option.label} className="choice is-boxed">
            <input
              type={question.isMultiple ? "checkbox" : "radio"}
              name={`${name}-${step}`}
              checked={selected.includes(option.label)}
              onChange={(event) => choose(option.label, event.target.checked)}
            />
            <span>
              {option.label}
              {option.description && <span className="menu-item-hint">{option.description}</span>}
            </span>
          </label>
        ))}
        <label className="field">
          <span className="field-hint">Or in your own words</span>
          <input
            className="input"
            value={text}
            maxLength={4000}
            onChange={(event) => {
              setTexts(texts.with(step, event.target.value));
              if (!question.isMultiple && event.target.value) setChosen(chosen.with(step, []));
            }}
          />
        </label>
      </fieldset>
      <Refused problem={problem} />
      <div className="dialog-actions">
        {step > 0 && <Button onClick={() => setStep(step - 1)}>Back</Button>}
        <Button look="primary" type="submit" disabled={!isAnswered || isBusy}>
          {isLast ? "Answer" : "Next"}
        </Button>
      </div>
    </form>
  );
}

function PlanCard({ action }: { action: Action }) {
  const args = record(action.args);
  const proposed = string(args.plan);
  const [plan, setPlan] = useState(proposed);
  const [isEditing, setEditing] = useState(false);
  const [remark, setRemark] = useState<string | null>(null);
  const { answer, problem, isBusy } = useAnswer(action);
  return (
    <div className="action" role="group" aria-label="Plan">
      <div className="action-head">
        <Icon name="plan" />
        <span>Plan: {string(args.title)}</span>
      </div>
      {isEditing ? (
        <textarea className="input action-plan" aria-label="The plan" value={plan} rows={12} onChange={(event) => setPlan(event.target.value)} />
      ) : (
        <div className="action-plan"><Markdown text={plan} /></div>
      )}
      {remark !== null && (
        <label className="field">
          <span className="field-label">What should change?</span>
          <textarea className="input" rows={3} value={remark} autoFocus onChange={(event) => setRemark(event.target.value)} />
        </label>
      )}
      <Refused problem={problem} />
      <div className="dialog-actions">
        {remark === null ? (
          <>
            <Button disabled={isBusy} onClick={() => setRemark("")}>Refuse…</Button>
            <Button disabled={isBusy} onClick={() => setEditing(!isEditing)}>{isEditing ? "Preview" : "Edit"}</Button>
            <Button
              look="primary"
              disabled={isBusy}
              onClick={() => void answer({ decision: "accept", ...(plan === proposed ? {} : { plan }) })}
            >
              {plan === proposed ? "Accept" : "Accept as edited"}
            </Button>
          </>
        ) : (
          <>
            <Button disabled={isBusy} onClick={() => setRemark(null)}>Back</Button>
            <Button
              look="danger"
              disabled={isBusy}
              onClick={() => void answer({ decision: "refuse", ...(remark.trim() ? { remark: remark.trim() } : {}) })}
            >
              Refuse
            </Button>
          </>
        )}
      </div>
    </div>
  );
}

/** Permission for one call, with exactly the arguments that would be used. */
function ApprovalCard({ action }: { action: Action }) {
  const [remark, setRemark] = useState("");
  const { answer, problem, isBusy } = useAnswer(action);
  const digest = action.arguments_digest ? { arguments_digest: action.arguments_digest } : {};
  const said = remark.trim() ? { remark: remark.trim() } : {};
  return (
    <div className="action" role="group" aria-label="Approval">
      <ApprovalFacts action={action} />
      <label className="field">
        <span className="field-hint">A remark for the model (optional)</span>
        <input className="input" value={remark} maxLength={2000} onChange={(event) => setRemark(event.target.value)} />
      </label>
      <Refused problem={problem} />
      <div className="dialog-actions">
        <Button look="danger" disabled={isBusy} onClick={() => void answer({ decision: "refuse", ...said, ...digest })}>
          Refuse
        </Button>
        {action.kind === "approval" && (
          <Button disabled={isBusy} onClick={() => void answer({ decision: "accept", remember: true, ...said, ...digest })}>
            Allow in this chat
          </Button>
        )}
        <Button look="primary" disabled={isBusy} onClick={() => void answer({ decision: "accept", ...said, ...digest })}>
          Allow once
        </Button>
      </div>
    </div>
  );
}

/** A tool that the program which made the chat has to run; a person sees that it is waited for. */
function ClientToolCard({ action }: { action: Action }) {
  return (
    <div className="action" role="group" aria-label="Tool of a program">
      <div className="action-head">
        <Icon name="tool" />
        <span>Waits for the program that runs <code><Visible>{action.tool_name}</Visible></code></span>
      </div>
      <Json value={action.args} />
    </div>
  );
}

function Refused({ problem }: { problem: string }) {
  return problem ? <p className="field-problem" role="alert">{problem}</p> : null;
}
