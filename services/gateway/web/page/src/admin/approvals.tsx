/** Rules of the installation that let tool calls run, ask first, or refuse them. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { SelectField, TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";

type Effect = components["schemas"]["ApprovalEffect"];

const EFFECTS: readonly (readonly [Effect, string])[] = [
  ["ask", "Ask first"],
  ["deny", "Refuse"],
  ["allow", "Let it run"],
];

const rules = queryOptions({
  queryKey: ["admin", "approval-rules"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/approval-rules", { signal })),
});

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: rules.queryKey });
}

export default function ApprovalsSection() {
  const [effect, setEffect] = useState<Effect>("ask");
  const [tool, setTool] = useState("execute");
  const [command, setCommand] = useState("");
  const [reason, setReason] = useState("");
  const saving = useSaving();

  async function make(): Promise<void> {
    const body = {
      effect,
      tool: tool.trim() || "*",
      ...(command.trim() ? { command: command.trim() } : {}),
      ...(reason.trim() ? { reason: reason.trim() } : {}),
    };
    await answered(api.POST("/api/v1/approval-rules", { body }));
    setCommand("");
    setReason("");
    await refresh();
  }

  return (
    <>
      <div className="section-part">
        <Form saving={saving} label="Add the rule" onSubmit={() => void saving.save(make, "The rule is added.")}>
          <div className="form-row">
            <SelectField label="What to do" value={effect} options={EFFECTS} onChange={setEffect} />
            <TextField label="Tool" value={tool} onChange={setTool} problem={saving.of("/tool")} hint="* stands for any text." />
          </div>
          <div className="form-row">
            <TextField
              label="Command"
              value={command}
              onChange={setCommand}
              problem={saving.of("/command")}
              placeholder="git push *"
              hint="Only for execute, which runs commands."
            />
            <TextField label="Reason" value={reason} onChange={setReason} problem={saving.of("/reason")} />
          </div>
        </Form>
      </div>
      <Loaded query={useQuery(rules)} what="list of rules">
        {(data) => (
          <Table
            label="Approval rules"
            rows={data.items}
            keyOf={(row) => row.id}
            empty={{ title: "No rules", text: "Calls run without questions, confined by the sandbox." }}
            columns={[
              { title: "Effect", cell: (row) => <span className="badge">{row.effect}</span> },
              { title: "Tool", cell: (row) => <code>{row.tool}</code> },
              { title: "Command", cell: (row) => (row.command ? <code>{row.command}</code> : "") },
              { title: "Reason", cell: (row) => row.reason ?? "" },
              {
                title: "",
                cell: (row) => (
                  <ConfirmButton
                    label="Delete"
                    title="Delete this rule?"
                    text="The calls that it was about are judged by the other rules."
                    onConfirm={async () => {
                      await answered(
                        api.DELETE("/api/v1/approval-rules/{rule_id}", { params: { path: { rule_id: row.id } } }),
                      );
                      await refresh();
                    }}
                  />
                ),
              },
            ]}
          />
        )}
      </Loaded>
    </>
  );
}
