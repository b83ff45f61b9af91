/** Another workspace for the chat: what stays behind is said first. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { me, queryClient } from "../../api/queries.ts";
import type { Chat } from "../../api/types.ts";
import { ChangedMeanwhile, changeChat } from "../../chat/chat-changes.ts";
import { usableWorkspaces } from "../../composer/workspace-picker.tsx";
import { SelectField } from "../../forms/fields.tsx";
import { Form, useSaving } from "../../forms/form.tsx";
import { Loaded } from "../../forms/loaded.tsx";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { chosenBetween, useChatTitles } from "../../workspaces/names.ts";
import { leftBehind, OWN_FILES, switchProblem, workspaceOptions } from "./switch-words.ts";

export function SwitchWorkspace({ chat, name }: { chat: Chat; name: string | undefined }) {
  const [isOpen, open] = useState(false);
  const who = useQuery(me).data;
  if (!who || who.id !== chat.owner_id || chat.archived) return null;
  const problem = switchProblem(chat);
  return (
    <div className="panel-part">
      <Button small icon="folder" disabled={Boolean(problem)} title={problem || undefined} onClick={() => open(true)}>
        Another workspace…
      </Button>
      {problem && <p className="panel-note">{problem}</p>}
      {isOpen && <SwitchDialog chat={chat} name={name} onClose={() => open(false)} />}
    </div>
  );
}

interface DialogProps {
  chat: Chat;
  name: string | undefined;
  onClose: () => void;
}

function SwitchDialog({ chat, name, onClose }: DialogProps) {
  // The chat as it was when this was opened, or as it was told since.
  const [seen, setSeen] = useState(chat);
  const present = seen.workspace_id ?? OWN_FILES;
  const [chosen, setChosen] = useState(present);
  const saving = useSaving();
  const workspaces = useQuery({ ...usableWorkspaces, staleTime: 0 });

  const titles = useChatTitles();
  const offered = chosenBetween(workspaces.data?.items ?? [], titles);

  function nameOf({ workspace_id }: Chat): string | undefined {
    const id = workspace_id ?? OWN_FILES;
    return workspaceOptions(offered, id).find(([each]) => each === id)?.[1];
  }

  async function save(): Promise<void> {
    try {
      await changeChat(seen, { workspace_id: chosen === OWN_FILES ? null : chosen });
    } catch (error) {
      if (!(error instanceof ChangedMeanwhile)) throw error;
      setSeen(error.current);
      throw new Error(`The chat was switched to “${nameOf(error.current)}” meanwhile. Switch replaces that.`);
    }
    // Files, changes and processes are those of the new one.
    await queryClient.invalidateQueries({ queryKey: ["chat", chat.id] });
    onClose();
  }

  return (
    <Dialog title="Work in another workspace" onClose={onClose}>
      <Loaded query={workspaces} what="list of workspaces">
        {() => (
          <Form
            saving={saving}
            label="Switch"
            disabled={chosen === present}
            onCancel={onClose}
            onSubmit={() => void saving.save(save, "The next turn works in the other workspace.")}
          >
            <SelectField
              label="Workspace"
              value={chosen}
              options={workspaceOptions(offered, present)}
              onChange={setChosen}
              problem={saving.of("/workspace_id")}
            />
            {chosen !== present && (
              <ul className="panel-note">
                {leftBehind(name).map((each) => (
                  <li key={each}>{each}</li>
                ))}
              </ul>
            )}
          </Form>
        )}
      </Loaded>
    </Dialog>
  );
}
