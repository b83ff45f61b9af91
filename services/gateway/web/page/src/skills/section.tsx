/** Texts that models read when they need them. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { ownSkills, refreshSkills } from "./queries.ts";
import { ConfirmButton } from "../forms/confirm.tsx";
import { AreaField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { Table } from "../forms/table.tsx";
import { ago, bytes } from "../ui/format.ts";
import { skillName } from "./name.ts";

const EMPTY = "---\nname: \ndescription: \n---\n";

async function remove(name: string): Promise<void> {
  await answered(api.DELETE("/api/v1/me/skills/{name}", { params: { path: { name } } }));
  await refreshSkills();
}

export default function SkillsSection() {
  const now = Date.now();
  return (
    <>
      <NewSkill />
      <Loaded query={useQuery(ownSkills)} what="list of skills">
        {(data) => (
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
                    <span className="cell-side">{row.description}</span>
                  </>
                ),
              },
              { title: "Size", cell: (row) => bytes(row.size_bytes) },
              { title: "Stored", cell: (row) => ago(row.updated_at, now) },
              {
                title: "",
                cell: (row) => (
                  <ConfirmButton
                    label="Delete"
                    title={`Delete ${row.name}?`}
                    text="Models cannot read it any more."
                    done="The skill is deleted."
                    onConfirm={() => remove(row.name)}
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

function NewSkill() {
  const [content, setContent] = useState(EMPTY);
  const saving = useSaving();
  const name = skillName(content);

  async function store(): Promise<void> {
    await answered(api.PUT("/api/v1/me/skills/{name}", { params: { path: { name } }, body: { content } }));
    setContent(EMPTY);
    await refreshSkills();
  }

  return (
    <div className="section-part">
      <Form saving={saving} label="Store the skill" disabled={!name} onSubmit={() => void saving.save(store, "The skill is stored.")}>
        <AreaField
          label="SKILL.md"
          value={content}
          onChange={setContent}
          rows={10}
          problem={saving.of("/content")}
          hint="Name and description between two lines of three dashes, then the text. One that has the same name is replaced."
        />
      </Form>
    </div>
  );
}
