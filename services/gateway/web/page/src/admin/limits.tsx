/** What people may spend. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import type { components } from "../api/schema.d.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { SelectField, TextField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { money } from "../ui/format.ts";
import { groups, limits, users } from "./queries.ts";

type Limit = components["schemas"]["SpendLimit"];
type Period = components["schemas"]["LimitPeriod"];

const PERIODS: readonly (readonly [Period, string])[] = [
  ["day", "a day"],
  ["week", "a week"],
  ["month", "a month"],
];
const MICROS = 1e6;

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: limits.queryKey });
}

export default function LimitsSection() {
  const people = new Map((useQuery(users).data?.items ?? []).map((each) => [each.id, each.login]));
  const teams = new Map((useQuery(groups).data?.items ?? []).map((each) => [each.id, each.name]));

  function nameOf(limit: Limit): string {
    if (limit.everyone) return "Everyone";
    if (limit.user_id) return people.get(limit.user_id) ?? limit.user_id;
    return `Group ${teams.get(limit.group_id ?? "") ?? limit.group_id}`;
  }

  return (
    <>
      <NewLimit people={people} teams={teams} />
      <Loaded query={useQuery(limits)} what="list of limits">
        {(data) => (
          <Table
            label="Spend limits"
            rows={data.items}
            keyOf={(row) => row.user_id ?? row.group_id ?? "everyone"}
            empty={{ title: "No limits", text: "Everybody may spend as much as their chats cost." }}
            columns={[
              { title: "Who", cell: (row) => <span className="cell-main">{nameOf(row)}</span> },
              { title: "Limit", isNumber: true, cell: (row) => `${money(row.limit_micros)} a ${row.period}` },
              {
                title: "",
                cell: (row) => (
                  <ConfirmButton
                    label="Remove"
                    title={`Remove the limit of ${nameOf(row)}?`}
                    text="A limit of their group or of everyone holds from then on, if there is one."
                    onConfirm={async () => {
                      await remove(row);
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

async function remove(limit: Limit): Promise<void> {
  if (limit.user_id) {
    const params = { path: { user_id: limit.user_id } };
    await answered(api.DELETE("/api/v1/spend-limits/users/{user_id}", { params }));
  } else if (limit.group_id) {
    const params = { path: { group_id: limit.group_id } };
    await answered(api.DELETE("/api/v1/spend-limits/groups/{group_id}", { params }));
  } else {
    await answered(api.DELETE("/api/v1/spend-limits/everyone"));
  }
}

interface NewLimitProps {
  people: ReadonlyMap<string, string>;
  teams: ReadonlyMap<string, string>;
}

function NewLimit({ people, teams }: NewLimitProps) {
  const [who, setWho] = useState("everyone");
  const [dollars, setDollars] = useState("");
  const [period, setPeriod] = useState<Period>("month");
  const saving = useSaving();
  const options: [string, string][] = [
    ["everyone", "Everyone"],
    ...[...teams].map(([id, name]): [string, string] => [`group:${id}`, `Group ${name}`]),
    ...[...people].map(([id, login]): [string, string] => [`user:${id}`, login]),
  ];

  async function save(): Promise<void> {
    const body = { limit_micros: Math.round(Number(dollars) * MICROS), period };
    const [kind, id = ""] = who.split(":");
    if (kind === "user") {
      const params = { path: { user_id: id } };
      await answered(api.PUT("/api/v1/spend-limits/users/{user_id}", { params, body }));
    } else if (kind === "group") {
      const params = { path: { group_id: id } };
      await answered(api.PUT("/api/v1/spend-limits/groups/{group_id}", { params, body }));
    } else {
      await answered(api.PUT("/api/v1/spend-limits/everyone", { body }));
    }
    setDollars("");
    await refresh();
  }

  return (
    <div className="section-part">
      <Form
        saving={saving}
        label="Set the limit"
        disabled={!(Number(dollars) >= 0) || dollars === ""}
        onSubmit={() => void saving.save(save, "The limit is set.")}
      >
        <div className="form-row">
          <SelectField label="Who" value={who} options={options} onChange={setWho} />
          <TextField
            label="Dollars"
            type="number"
            value={dollars}
            onChange={setDollars}
            problem={saving.of("/limit_micros")}
          />
          <SelectField label="In" value={period} options={PERIODS} onChange={setPeriod} />
        </div>
      </Form>
    </div>
  );
}
