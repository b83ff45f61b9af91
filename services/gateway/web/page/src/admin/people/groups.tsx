/** Groups of users, for shares, limits and templates. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { SelectField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { complain } from "../../ui/toasts.tsx";
import { groups, users } from "../queries.ts";

type Group = components["schemas"]["Group"];

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: groups.queryKey });
}

export default function GroupsSection() {
  const [name, setName] = useState("");
  const [open, setOpen] = useState<Group>();
  const saving = useSaving();

  async function make(): Promise<void> {
    await answered(api.POST("/api/v1/groups", { body: { name: name.trim() } }));
    setName("");
    await refresh();
  }

  return (
    <>
      <div className="section-part">
        <Form saving={saving} label="Create" disabled={!name.trim()} onSubmit={() => void saving.save(make)}>
          <TextField label="New group" value={name} onChange={setName} problem={saving.of("/name")} />
        </Form>
      </div>
      <Loaded query={useQuery(groups)} what="list of groups">
        {(data) => (
          <Table
            label="Groups"
            rows={data.items}
            keyOf={(row) => row.id}
            empty={{ title: "No groups", text: "A group shares limits, templates and chats." }}
            columns={[
              { title: "Name", cell: (row) => <span className="cell-main">{row.name}</span> },
              { title: "Members", isNumber: true, cell: (row) => row.member_count },
              {
                title: "",
                cell: (row) => (
                  <div className="table-actions">
                    <Button small onClick={() => setOpen(row)}>
                      Members
                    </Button>
                    <ConfirmButton
                      label="Delete"
                      title={`Delete ${row.name}?`}
                      text="Shares and limits that name it are deleted too."
                      onConfirm={async () => {
                        await answered(api.DELETE("/api/v1/groups/{group_id}", { params: { path: { group_id: row.id } } }));
                        await refresh();
                      }}
                    />
                  </div>
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {open && <Members group={open} onClose={() => setOpen(undefined)} />}
    </>
  );
}

function Members({ group, onClose }: { group: Group; onClose: () => void }) {
  const members = queryOptions({
    queryKey: ["admin", "groups", group.id, "members"],
    queryFn: ({ signal }) =>
      answered(
        api.GET("/api/v1/groups/{group_id}/members", {
          params: { path: { group_id: group.id }, query: { limit: 200 } },
          signal,
        }),
      ),
  });
  const everyone = useQuery(users).data?.items ?? [];
  const [chosen, setChosen] = useState("");

  async function change(work: Promise<unknown>): Promise<void> {
    await work.catch(complain);
    await Promise.all([queryClient.invalidateQueries({ queryKey: members.queryKey }), refresh()]);
  }

  return (
    <Dialog title={`Members of ${group.name}`} onClose={onClose} wide>
      <Loaded query={useQuery(members)} what="list of members">
        {(data) => {
          const ids = new Set(data.items.map((each) => each.id));
          const others = everyone.filter((each) => !ids.has(each.id));
          const options = [["", "Choose somebody"], ...others.map((each) => [each.id, each.login])] as [string, string][];
          return (
            <>
              <div className="section-bar">
                <SelectField label="Add" value={chosen} options={options} onChange={setChosen} />
                <Button
                  disabled={!chosen}
                  onClick={() => {
                    const path = { group_id: group.id, user_id: chosen };
                    setChosen("");
                    void change(answered(api.PUT("/api/v1/groups/{group_id}/members/{user_id}", { params: { path } })));
                  }}
                >
                  Add
                </Button>
              </div>
              <Table
                label="Members"
                rows={data.items}
                keyOf={(row) => row.id}
                empty={{ title: "It has no members", text: "Add somebody above." }}
                columns={[
                  { title: "User", cell: (row) => row.display_name || row.login },
                  {
                    title: "",
                    cell: (row) => (
                      <Button
                        small
                        onClick={() => {
                          const path = { group_id: group.id, user_id: row.id };
                          void change(
                            answered(api.DELETE("/api/v1/groups/{group_id}/members/{user_id}", { params: { path } })),
                          );
                        }}
                      >
                        Remove
                      </Button>
                    ),
                  },
                ]}
              />
            </>
          );
        }}
      </Loaded>
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}
