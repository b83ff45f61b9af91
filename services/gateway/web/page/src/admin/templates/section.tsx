/** What workspaces are made from. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../../api/client.ts";
import { queryClient } from "../../api/queries.ts";
import type { components } from "../../api/schema.d.ts";
import { ConfirmButton } from "../../forms/confirm.tsx";
import { AreaField, CheckField, SelectField, TextField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Table } from "../../forms/table.tsx";
import { Button } from "../../ui/button.tsx";
import { plural } from "../../ui/format.ts";
import { lifetimeOfTemplate } from "../../workspaces/lifetime-words.ts";
import { LifetimeDialog, LifetimeFields, lifetimeBody, NO_LIFETIME } from "./lifetime.tsx";

type Kind = "scratch" | "git";
type Access = components["schemas"]["NetworkAccess"];

const KINDS: readonly (readonly [Kind, string])[] = [
  ["scratch", "Empty directory"],
  ["git", "Git repository"],
];
const BEGINS: Record<components["schemas"]["WorkspaceKind"], string> = {
  scratch: "Empty directory",
  git: "Git repository",
  local: "Directory of the node",
  fork: "Copy of a workspace",
};
const ACCESS: readonly (readonly [Access, string])[] = [
  ["none", "No network"],
  ["proxy", "Allowed hosts, through the proxy"],
  ["open", "Everything"],
];

const templates = queryOptions({
  queryKey: ["admin", "templates"],
  queryFn: ({ signal }) => answered(api.GET("/api/v1/templates", { signal })),
});

async function refresh(): Promise<void> {
  await queryClient.invalidateQueries({ queryKey: templates.queryKey });
}

export default function TemplatesSection() {
  const [open, setOpen] = useState<string>();
  return (
    <>
      <NewTemplate />
      {open && <LifetimeDialog templateId={open} onClose={() => setOpen(undefined)} onSaved={refresh} />}
      <Loaded query={useQuery(templates)} what="list of templates">
        {(data) => (
          <Table
            label="Templates"
            rows={data.items}
            keyOf={(row) => row.id}
            empty={{ title: "No templates", text: "Chats work in an empty directory until there is one." }}
            columns={[
              {
                title: "Template",
                cell: (row) => (
                  <>
                    <span className="cell-main">{row.display_name || row.name}</span>
                    <span className="cell-side">{row.description || row.git?.url}</span>
                  </>
                ),
              },
              { title: "Begins as", cell: (row) => BEGINS[row.kind ?? "scratch"] },
              { title: "Network", cell: (row) => ACCESS.find(([access]) => access === row.network.access)?.[1] ?? "As the node allows" },
              { title: "For agents", cell: (row) => (row.enabled_for_agents ? "yes" : "no") },
              { title: "Lifetime", cell: (row) => lifetimeOfTemplate(row) },
              { title: "Used by", cell: (row) => plural(row.active_users, "user") },
              {
                title: "",
                cell: (row) => (
                  <div className="table-actions">
                    <Button small onClick={() => setOpen(row.id)}>
                      Lifetime
                    </Button>
                    <ConfirmButton
                      label="Forget"
                      title={`Forget ${row.name}?`}
                      text="Workspaces that were made from it stay."
                      onConfirm={async () => {
                        await answered(
                          api.DELETE("/api/v1/templates/{template_id}", { params: { path: { template_id: row.id } } }),
                        );
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
    </>
  );
}

function NewTemplate() {
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [kind, setKind] = useState<Kind>("git");
  const [url, setUrl] = useState("");
  const [script, setScript] = useState("");
  const [access, setAccess] = useState<Access>("proxy");
  const [forAgents, setForAgents] = useState(true);
  const [lifetime, setLifetime] = useState(NO_LIFETIME);
  const saving = useSaving();

  async function make(): Promise<void> {
    const body = {
      name: name.trim(),
      description: description.trim(),
      kind,
      ...(kind === "git" ? { git: { url: url.trim() } } : { scratch: {} }),
      ...(script.trim() ? { setup_script: script } : {}),
      network: { access },
      enabled_for_agents: forAgents,
      ...lifetimeBody(lifetime),
    };
    await answered(api.POST("/api/v1/templates", { body }));
    setName("");
    setDescription("");
    setUrl("");
    setScript("");
    setLifetime(NO_LIFETIME);
    await refresh();
  }

  return (
    <div className="section-part">
      <Form
        saving={saving}
        label="Add the template"
        disabled={!name.trim() || (kind === "git" && !url.trim())}
        onSubmit={() => void saving.save(make, "The template is added.")}
      >
        <div className="form-row">
          <TextField label="Name" value={name} onChange={setName} problem={saving.of("/name")} />
          <SelectField label="Begins as" value={kind} options={KINDS} onChange={setKind} />
        </div>
        {kind === "git" && (
          <TextField label="Repository" type="url" value={url} onChange={setUrl} problem={saving.of("/git/url")} />
        )}
        <TextField
          label="Description"
          value={description}
          onChange={setDescription}
          problem={saving.of("/description")}
          hint="Agents choose by it."
        />
        <AreaField
          label="Setup script"
          rows={4}
          value={script}
          onChange={setScript}
          problem={saving.of("/setup_script")}
        />
        <SelectField label="Network" value={access} options={ACCESS} onChange={setAccess} />
        <CheckField label="Agents may choose it" checked={forAgents} onChange={setForAgents} />
        <LifetimeFields values={lifetime} saving={saving} onChange={setLifetime} />
      </Form>
    </div>
  );
}
