/** What every model reads about you before it answers. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import { queryClient } from "../api/queries.ts";
import { AreaField } from "../forms/fields.tsx";
import { Form, useSaving } from "../forms/form.tsx";
import { Loaded } from "../forms/loaded.tsx";
import { ownSettings } from "./queries.ts";

export default function InstructionsSection() {
  return (
    <Loaded query={useQuery(ownSettings)} what="settings">
      {(data) => <Instructions text={data.custom_prompt} />}
    </Loaded>
  );
}

function Instructions({ text }: { text: string }) {
  const [prompt, setPrompt] = useState(text);
  const saving = useSaving();

  async function save(): Promise<void> {
    const body = { custom_prompt: prompt };
    queryClient.setQueryData(
      ownSettings.queryKey,
      await answered(api.PATCH("/api/v1/me/settings", { body })),
    );
  }

  return (
    <Form
      saving={saving}
      disabled={prompt === text}
      onSubmit={() => void saving.save(save, "Your instructions are saved.")}
    >
      <AreaField
        label="Your instructions"
        value={prompt}
        onChange={setPrompt}
        rows={12}
        problem={saving.of("/custom_prompt")}
        hint="Every chat of yours begins with them: how you like answers, what you work on."
      />
    </Form>
  );
}
