/** One's own skills: texts that models read when they need them. */
import "./skills.css";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { AreaField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { Button } from "../ui/button.tsx";
import { ago, bytes } from "../ui/format.ts";
import { saveBlob } from "../ui/save.ts";
import { complain } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { archiveOf } from "./archive.ts";
import { ImportSkills } from "./import.tsx";
import { skillName } from "./name.ts";
import { ownSkills, refreshSkills, skillText, storeSkill } from "./queries.ts";
import { SKILL_FILE } from "./skill-file.ts";

const EMPTY = "---\nname: \ndescription: \n---\n";

async function remove(name: string): Promise<void> {
  await answered(api.DELETE("/api/v1/me/skills/{name}", { params: { path: { name } } }));
  await refreshSkills();
}

async function save(name: string): Promise<void> {
  try {
    saveBlob(SKILL_FILE, new Blob([await skillText(name)], { type: "text/markdown" }));
  } catch (error) {
    complain(error);
  }
}

async function saveAll(names: readonly string[]): Promise<void> {
  const entries = [];
  for (const name of names) entries.push({ path: `${name}/${SKILL_FILE}`, text: await skillText(name) });
  saveBlob("skills.zip", archiveOf(entries));
}

export default function SkillsSection() {
  const [content, setContent] = useState(EMPTY);
  const saving = useSaving();
  const now = Date.now();

  async function edit(name: string): Promise<void> {
    try {
      setContent(await skillText(name));
      document.querySelector<HTMLElement>(".skill-form textarea")?.focus();
    } catch (error) {
      complain(error);
    }
  }

  return (
    <>
      <SkillForm content={content} onChange={setContent} />
      <Loaded query={useQuery(ownSkills)} what="list of skills">
        {(data) => (
          <div className="skill-list">
            <ImportSkills known={data.items.map((each) => each.name)} />
            <Table
              label="Skills"
              rows={data.items}
              keyOf={(row) => row.name}
              empty={{ title: "No skills", text: "Models know a skill by its description, and read it when they need it." }}
              columns={[
                {
                  title: "Name",
                  cell: (row) => (
                    <>
                      <span className="cell-main">{row.name}</span>
                      <span className="cell-side"><Visible>{row.description}</Visible></span>
                    </>
                  ),
                },
                { title: "Size", cell: (row) => bytes(row.size_bytes) },
                { title: "Stored", cell: (row) => ago(row.updated_at, now) },
                {
                  title: "",
                  cell: (row) => (
                    <div className="table-actions">
                      <Button small aria-label={`Edit ${row.name}`} onClick={() => void edit(row.name)}>Edit</Button>
                      <Button small aria-label={`Download ${row.name}`} onClick={() => void save(row.name)}>Download</Button>
                      <ConfirmButton
                        label="Delete"
                        title={`Delete ${row.name}?`}
                        text="Models cannot read it any more."
                        done="The skill is deleted."
                        onConfirm={() => remove(row.name)}
                      />
                    </div>
                  ),
                },
              ]}
            />
            {data.items.length > 0 && (
              <div className="form-actions">
                <Button disabled={saving.isBusy} onClick={() => void saving.save(() => saveAll(data.items.map((each) => each.name)))}>
                  {saving.isBusy ? "Reading…" : "Download all as ZIP"}
                </Button>
                {saving.problem && <p className="field-problem" role="alert">{saving.problem}</p>}
              </div>
            )}
          </div>
        )}
      </Loaded>
    </>
  );
}

function SkillForm({ content, onChange }: { content: string; onChange: (content: string) => void }) {
  const saving = useSaving();
  const name = skillName(content);

  async function store(): Promise<void> {
    await storeSkill(name, content);
    onChange(EMPTY);
    await refreshSkills();
  }

  return (
    <div className="section-part skill-form">
      <Form saving={saving} label="Store the skill" disabled={!name} onSubmit={() => void saving.save(store, "The skill is stored.")}>
        <AreaField
          label="SKILL.md"
          value={content}
          onChange={onChange}
          rows={10}
          problem={saving.of("/content")}
          hint="Name and description between two lines of three dashes, then the text. One that has the same name is replaced."
        />
      </Form>
    </div>
  );
}
