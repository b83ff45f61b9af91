/** Which workspace may use which secrets, and how often it did. */
import { queryOptions, useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { ChecksField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { plural } from "../../ui/format.ts";
import { isOfAgent, nameOf, useChatTitles } from "../../workspaces/names.ts";
import { deliveryWords, type Use, usesOf } from "./words.ts";

type Secret = components["schemas"]["Secret"];
type Workspace = components["schemas"]["Workspace"];

/** Each row is a request of its own. */
const ROWS_AT_A_TIME = 20;

const workspaces = queryOptions({
  queryKey: ["workspaces", "own"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/workspaces", { params: { query: { limit: 200 } }, signal })),
});

function grants(workspaceId: string) {
  return queryOptions({
    queryKey: ["secrets", "grants", workspaceId],
    queryFn: ({ signal }) =>
      answered(api.GET("/api/v1/workspaces/{workspace_id}/grants", { params: { path: { workspace_id: workspaceId }, query: { limit: 200 } }, signal })),
  });
}

interface Props {
  secrets: readonly Secret[];
  uses: readonly Use[];
}

export function SecretGrants({ secrets, uses }: Props) {
  return (
    <Loaded query={useQuery(workspaces)} what="list of workspaces">
      {(data) => <Grants rows={data.items.filter((each) => each.state !== "deleted" && !isOfAgent(each))} secrets={secrets} uses={uses} />}
    </Loaded>
  );
}

function Grants({ rows, secrets, uses }: Props & { rows: readonly Workspace[] }) {
  const [shownMax, setShownMax] = useState(ROWS_AT_A_TIME);
  const [open, setOpen] = useState<string>();
  const titles = useChatTitles();
  const shown = rows.slice(0, shownMax);
  const read = useQueries({ queries: shown.map((each) => grants(each.id)) });
  const grantedTo = new Map(shown.map((each, index) => [each.id, read[index]?.data?.items.map((grant) => grant.name)]));
  const opened = shown.find((each) => each.id === open);

  function words(workspace: Workspace): string {
    const names = grantedTo.get(workspace.id);
    if (!names) return "…";
    const counts = usesOf(uses, workspace.id);
    return names.map((name) => (counts.get(name) ? `${name} (used ${plural(counts.get(name)!, "time")})` : name)).join(", ") || "None";
  }

  return (
    <>
      <Table
        label="Secrets of workspaces"
        rows={shown}
        keyOf={(row) => row.id}
        empty={{ title: "No workspaces", text: "A chat makes one when it needs one; then secrets can be granted to it." }}
        columns={[
          { title: "Workspace", cell: (row) => <span className="cell-main">{nameOf(row, titles)}</span> },
          { title: "May use", cell: words },
          {
            title: "",
            cell: (row) => (
              <div className="table-actions">
                <Button small aria-label={`Choose secrets of ${nameOf(row, titles)}`} disabled={!grantedTo.get(row.id)} onClick={() => setOpen(row.id)}>
                  Choose secrets
                </Button>
              </div>
            ),
          },
        ]}
      />
      {rows.length > shownMax && <Button small onClick={() => setShownMax(shownMax + ROWS_AT_A_TIME)}>Show more workspaces</Button>}
      {opened && (
        <Dialog title={`Secrets of ${nameOf(opened, titles)}`} onClose={() => setOpen(undefined)}>
          <GrantForm workspace={opened} secrets={secrets} granted={grantedTo.get(opened.id) ?? []} onDone={() => setOpen(undefined)} />
        </Dialog>
      )}
    </>
  );
}

interface FormProps {
  workspace: Workspace;
  secrets: readonly Secret[];
  granted: readonly string[];
  onDone: () => void;
}

function GrantForm({ workspace, secrets, granted, onDone }: FormProps) {
  // One's own comes before the installation's of the same name, as it does for the workspace.
  const shared = secrets.filter((each) => !each.owner_id);
  const byName = new Map([...shared, ...secrets.filter((each) => each.owner_id)].map((each) => [each.name, each]));
  const offered = [...byName.values()].toSorted((one, other) => one.name.localeCompare(other.name));
  const [chosen, setChosen] = useState<readonly string[]>(granted.filter((name) => offered.some((each) => each.name === name)));
  const saving = useSaving();

  async function save(): Promise<void> {
    const params = { path: { workspace_id: workspace.id } };
    await answered(api.PUT("/api/v1/workspaces/{workspace_id}/grants", { params, body: { secret_names: [...chosen] } }));
    await queryClient.invalidateQueries({ queryKey: grants(workspace.id).queryKey });
    onDone();
  }

  if (offered.length === 0) return <p>There are no secrets. Store one first.</p>;
  return (
    <Form saving={saving} onSubmit={() => void saving.save(save, "The workspace may use what you chose.")} onCancel={onDone}>
      <ChecksField
        label="It may use"
        options={offered.map((each) => [each.name, each.name, [deliveryWords(each.delivery), each.hosts.join(", ")].filter(Boolean).join(": ")] as const)}
        chosen={chosen}
        onChange={setChosen}
        problem={saving.of("/secret_names")}
        hint="What is not chosen is taken from it."
      />
    </Form>
  );
}
