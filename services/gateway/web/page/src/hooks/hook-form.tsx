/** The settings of a hook: a new one, or changes of the version that was read. */
import { useState } from "react";
import type { components } from "../api/schema.d.ts";
import { AreaField, CheckField, ChecksField, SelectField, TextField } from "../forms/fields.tsx";
import { Form, type Saving } from "../forms/form.tsx";
import { linesOf } from "../forms/text-lists.ts";
import type { Hook } from "./queries.ts";

export type Body = components["schemas"]["CreateHookBody"];
type Event = components["schemas"]["HookEvent"];
type FailPolicy = components["schemas"]["HookFailPolicy"];

const EVENTS: readonly (readonly [Event, string, string])[] = [
  ["session_start", "session_start", "before the first model call of a chat"],
  ["user_prompt_submit", "user_prompt_submit", "before a message is accepted; may refuse or rewrite it"],
  ["pre_tool_use", "pre_tool_use", "before a call of a tool; may refuse it, ask a person, or rewrite it"],
  ["post_tool_use", "post_tool_use", "after the results of calls were stored"],
  ["pre_compact", "pre_compact", "before a history is summarised"],
  ["post_compact", "post_compact", "after a history was summarised"],
  ["stop", "stop", "before a turn ends with an answer"],
];
const POLICIES: readonly (readonly [FailPolicy, string])[] = [
  ["closed", "The operation fails too"],
  ["open", "The operation goes on"],
];

interface Props {
  hook?: Hook | undefined;
  saving: Saving;
  label: string;
  onSubmit: (body: Body) => void;
  onCancel?: () => void;
}

export function HookForm({ hook, saving, label, onSubmit, onCancel }: Props) {
  const [name, setName] = useState(hook?.name ?? "");
  const [url, setUrl] = useState(hook?.url ?? "");
  const [events, setEvents] = useState<readonly Event[]>(hook?.events ?? ["pre_tool_use"]);
  const [tools, setTools] = useState((hook?.tools ?? []).join("\n"));
  const [timeout, setTimeout] = useState(String(hook?.timeout_ms || 1500));
  const [policy, setPolicy] = useState<FailPolicy>(hook?.fail_policy ?? "closed");
  const [isEnabled, setEnabled] = useState(!hook?.disabled);
  const asksTools = events.includes("pre_tool_use") || events.includes("post_tool_use");

  return (
    <Form
      saving={saving}
      label={label}
      disabled={!name.trim() || !url.trim() || events.length === 0}
      onSubmit={() =>
        onSubmit({
          name: name.trim(),
          url: url.trim(),
          events: [...events],
          tools: linesOf(tools),
          timeout_ms: timeout ? Number(timeout) : null,
          fail_policy: policy,
          disabled: !isEnabled,
        })
      }
      {...(onCancel ? { onCancel } : {})}
    >
      <div className="form-row">
        <TextField label="Name" value={name} onChange={setName} problem={saving.of("/name")} maxLength={64} placeholder="policy" />
        <TextField
          label="Address"
          type="url"
          value={url}
          onChange={setUrl}
          problem={saving.of("/url")}
          placeholder="https://policy.example.com/parley"
        />
      </div>
      <ChecksField label="Events that it gets" options={EVENTS} chosen={events} onChange={setEvents} problem={saving.of("/events")} />
      {asksTools && (
        <AreaField
          label="Tools"
          rows={2}
          value={tools}
          onChange={setTools}
          problem={saving.of("/tools")}
          hint="One name on a line; * stands for any text, as in exec*. Empty for all tools."
        />
      )}
      <div className="form-row">
        <TextField
          label="Wait for an answer, in milliseconds"
          type="number"
          value={timeout}
          onChange={setTimeout}
          problem={saving.of("/timeout_ms")}
          hint="100 to 5000"
        />
        <SelectField label="If it fails" value={policy} options={POLICIES} onChange={setPolicy} problem={saving.of("/fail_policy")} />
      </div>
      <CheckField label="Enabled" checked={isEnabled} onChange={setEnabled} />
    </Form>
  );
}
