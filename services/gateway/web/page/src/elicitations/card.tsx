/** What a server asks in the middle of a call: a form of plain fields, or an address to open. */
import "../forms/forms.css";
import "../mcp/mcp.css";
import { useQuery } from "@tanstack/react-query";
import { type FormEvent, type ReactNode, useState } from "react";
import { Problem } from "../api/problem.ts";
import type { Action } from "../api/types.ts";
import { useAnswer } from "../cards/actions/answering.ts";
import { record, string } from "../cards/outcome.ts";
import { AreaField, CheckField, ChecksField, SelectField, TextField } from "../forms/fields.tsx";
import { safeLink } from "../markdown/links.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Visible, visibleText } from "../ui/visible.tsx";
import { type FieldKind, fieldsOf, filled, type FormField, initialValues, looksSecret, pointerOf, type Typed } from "./form.ts";
import { serverOf } from "../mcp/selection.ts";
import { servers } from "../mcp/servers.ts";

export function ElicitationCard({ action }: { action: Action }) {
  const args = record(action.args);
  const all = useQuery(servers).data?.items ?? [];
  const name = serverOf(action.tool_name, all);
  const Asked = args.url && !args.schema ? AddressToOpen : FormToFill;
  return (
    <div className="action" role="group" aria-label="Question of a server">
      <div className="action-head">
        <Icon name="question" />
        <span>The server <Visible>{name}</Visible> asks in <code><Visible>{action.tool_name}</Visible></code></span>
      </div>
      <p className="mcp-text"><Visible>{string(args.message)}</Visible></p>
      <Asked action={action} server={name} />
    </div>
  );
}

interface AskedProps {
  action: Action;
  server: string;
}

function FormToFill({ action, server }: AskedProps) {
  const fields = fieldsOf(record(action.args).schema);
  const [values, setValues] = useState(() => initialValues(fields));
  const [problems, setProblems] = useState<Record<string, string>>({});
  const { answer, problem, error, isBusy } = useAnswer(action);

  function submit(event: FormEvent): void {
    event.preventDefault();
    const made = filled(fields, values);
    setProblems(made.problems);
    if (Object.keys(made.problems).length === 0) void answer({ decision: "accept", content: made.content });
  }

  const refused = (field: FormField) => (error instanceof Problem ? error.field(pointerOf(field.name)) : undefined);
  const isMarked = fields.some(refused);
  return (
    <form className="form" noValidate autoComplete="off" onSubmit={submit}>
      {fields.map((each) => (
        <FieldOf
          key={each.name}
          field={each}
          typed={values[each.name] ?? ""}
          problem={problems[each.name] ?? refused(each)}
          onType={(typed) => setValues({ ...values, [each.name]: typed })}
        />
      ))}
      <p className="field-hint">
        <Visible>{server}</Visible> receives what you write here. Give it no passwords and no keys.
      </p>
      {problem && !isMarked && <p className="field-problem" role="alert">{problem}</p>}
      <div className="dialog-actions">
        <Button disabled={isBusy} onClick={() => void answer({ decision: "refuse" })}>Decline</Button>
        <Button look="primary" type="submit" disabled={isBusy}>Accept</Button>
      </div>
    </form>
  );
}

/** Numbers are typed as text: browsers hide what is no number. */
const INPUTS: Partial<Record<FieldKind, "email" | "url" | "date" | "datetime-local">> = {
  email: "email",
  uri: "url",
  date: "date",
  "date-time": "datetime-local",
};

interface FieldOfProps {
  field: FormField;
  typed: Typed;
  problem: string | undefined;
  onType: (typed: Typed) => void;
}

function FieldOf({ field, typed, problem, onType }: FieldOfProps): ReactNode {
  const label = (
    <>
      <Visible>{field.label}</Visible>
      {field.isRequired && <span className="field-hint"> (required)</span>}
    </>
  );
  const hint = hintOf(field);
  const shared = { label, problem, ...(hint ? { hint } : {}) };
  const text = typeof typed === "string" ? typed : "";
  switch (field.kind) {
    case "boolean":
      return (
        <div className="field">
          <CheckField label={label} hint={hint} checked={typed === true} onChange={onType} />
          {problem && <span className="field-problem" role="alert">{problem}</span>}
        </div>
      );
    case "choice": {
      const options = field.options.map((each, index) => [String(index), visibleText(each.words)] as const);
      const all = [["", "Nothing chosen"] as const, ...options];
      return <SelectField {...shared} value={text} options={all} onChange={onType} />;
    }
    case "choices": {
      const options = field.options.map((each, index) => [String(index), visibleText(each.words), ""] as const);
      return <ChecksField {...shared} options={options} chosen={typeof typed === "object" ? typed : []} onChange={onType} />;
    }
    case "lines":
      return <AreaField {...shared} rows={3} value={text} onChange={onType} />;
    default:
      return <TextField {...shared} {...KEPT_EMPTY} type={INPUTS[field.kind] ?? "text"} required={field.isRequired} value={text} onChange={onType} />;
  }
}

/** Browsers and managers of passwords put nothing into the fields of a third party. */
const KEPT_EMPTY = { autoComplete: "off", "data-1p-ignore": "", "data-lpignore": "true", "data-bwignore": "" };

function hintOf(field: FormField): ReactNode {
  if (!looksSecret(field)) return field.description && <Visible>{field.description}</Visible>;
  return (
    <>
      <Visible>{field.description}</Visible> This seems to ask for a secret. Decline unless you are sure.
    </>
  );
}

/** The whole host is shown before anything is opened, and only a click opens it. */
function AddressToOpen({ action, server }: AskedProps) {
  const address = string(record(action.args).url);
  const link = safeLink(address);
  const [isOpened, setOpened] = useState(false);
  const { answer, problem, isBusy } = useAnswer(action);
  return (
    <>
      {link ? (
        <>
          <p>
            It wants you to open a page at <code className="mcp-host">{link.host}</code>. What you do there is between you, that
            host and <Visible>{server}</Visible>.
          </p>
          <details>
            <summary>The whole address</summary>
            <code className="mcp-text"><Visible>{address}</Visible></code>
          </details>
        </>
      ) : (
        <p className="card-problem">Its address cannot be opened: <Visible>{address}</Visible></p>
      )}
      {problem && <p className="field-problem" role="alert">{problem}</p>}
      <div className="dialog-actions">
        <Button disabled={isBusy} onClick={() => void answer({ decision: "refuse" })}>Decline</Button>
        {link && (
          <a className={isOpened ? "button" : "button is-primary"} href={link.href} target="_blank" rel="noopener noreferrer" onClick={() => setOpened(true)}>
            Open {link.host}
          </a>
        )}
        {isOpened && (
          <Button look="primary" disabled={isBusy} onClick={() => void answer({ decision: "accept" })}>Accept</Button>
        )}
      </div>
    </>
  );
}
