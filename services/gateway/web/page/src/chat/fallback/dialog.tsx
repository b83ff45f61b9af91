/** The model that continues a turn of the chat when the provider of its own is down or over quota. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { installation } from "../../admin/queries.ts";
import { models } from "../../api/queries.ts";
import type { Chat } from "../../api/types.ts";
import { SelectField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { MenuItem, MenuLine } from "../../ui/menu.tsx";
import { ChangedMeanwhile, changeChat } from "../chat-changes.ts";
import { AS_FOR_ALL, NONE, nameOf } from "./names.ts";

function useNames() {
  const all = useQuery(models).data?.items ?? [];
  const forAll = useQuery(installation).data?.fallback_model_id ?? null;
  return { all, forAll };
}

export function FallbackItem({ chat, onOpen }: { chat: Chat; onOpen: () => void }) {
  const { all, forAll } = useNames();
  return (
    <>
      <MenuLine />
      <MenuItem icon="undo" hint={nameOf(chat.fallback_model_id, forAll, all)} onChoose={onOpen}>
        Fallback model…
      </MenuItem>
    </>
  );
}

export function FallbackDialog({ chat, onClose }: { chat: Chat; onClose: () => void }) {
  const { all, forAll } = useNames();
  const [chosen, setChosen] = useState(chat.fallback_model_id ?? AS_FOR_ALL);
  // The chat as it was when this was opened, or as it was told since.
  const [seen, setSeen] = useState(chat);
  const saving = useSaving();
  const offered = all.filter((each) => each.enabled || each.id === chosen);
  const known = [AS_FOR_ALL, NONE, ...offered.map((each) => each.id)];
  const options = known.map((id): [string, string] => [id, nameOf(id, forAll, all)]);
  if (!known.includes(chosen)) options.push([chosen, nameOf(chosen, forAll, all)]);

  async function save(): Promise<void> {
    try {
      await changeChat(seen, { fallback_model_id: chosen === AS_FOR_ALL ? null : chosen });
    } catch (error) {
      if (!(error instanceof ChangedMeanwhile)) throw error;
      setSeen(error.current);
      throw new Error(`“${nameOf(error.current.fallback_model_id, forAll, all)}” was chosen meanwhile. Save replaces that.`);
    }
  }

  return (
    <Dialog title="Fallback model" onClose={onClose}>
      <Form
        saving={saving}
        onCancel={onClose}
        onSubmit={() => void saving.save(save, "The fallback model of this chat is stored.").then((isDone) => isDone && onClose())}
      >
        <SelectField
          label="Answers when the provider of this chat is down or over quota"
          value={chosen}
          options={options}
          onChange={setChosen}
          problem={saving.of("/fallback_model_id")}
        />
      </Form>
    </Dialog>
  );
}
