/** Putting files into a directory of the workspace; a file that is there is replaced only if the person says so. */
import { useRef, useState } from "react";
import { Problem, problemOf, wordsOf } from "../../api/problem.ts";
import { queryClient } from "../../api/queries.ts";
import { randomKey, send } from "../../api/transport.ts";
import { Button } from "../../ui/button.tsx";
import { Dialog } from "../../ui/dialog.tsx";
import { plural } from "../../ui/format.ts";
import { complain, say } from "../../ui/toasts.tsx";
import { Visible } from "../../ui/visible.tsx";
import { contentUrl } from "./content-url.ts";

interface Props {
  chatId: string;
  /** Empty for the root. */
  directory: string;
  onStored: () => void;
}

export function Upload({ chatId, directory, onStored }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  const [pending, setPending] = useState(0);
  const [existing, setExisting] = useState<readonly File[]>([]);

  async function write(file: File, createsOnly: boolean): Promise<void> {
    const path = directory ? `${directory}/${file.name}` : file.name;
    const address = new URL(`${contentUrl(chatId, path)}${createsOnly ? "&create_only=true" : ""}`, location.origin);
    const headers = { "Content-Type": "application/octet-stream", "Idempotency-Key": randomKey() };
    const answer = await send(new Request(address, { method: "PUT", headers, body: file }));
    if (!answer.ok) throw await problemOf(answer);
    void queryClient.invalidateQueries({ queryKey: ["chat", chatId, "content", path] });
  }

  async function store(files: readonly File[], createsOnly: boolean): Promise<void> {
    setExisting([]);
    setPending(files.length);
    const refused: File[] = [];
    const stored: File[] = [];
    for (const file of files) {
      try {
        await write(file, createsOnly);
        stored.push(file);
      } catch (error) {
        if (createsOnly && error instanceof Problem && error.code === "PATH_EXISTS") refused.push(file);
        else complain(new Error(`${file.name} was not stored. ${wordsOf(error)}`));
      }
      setPending((was) => was - 1);
    }
    if (!createsOnly && stored[0]) say(stored.length === 1 ? `${stored[0].name} was replaced.` : `${stored.length} files were replaced.`);
    setExisting(refused);
    onStored();
  }

  return (
    <>
      {pending > 0 && (
        <span className="panel-note" role="status">
          Storing {plural(pending, "file")}…
        </span>
      )}
      <Button small icon="arrowUp" disabled={pending > 0} onClick={() => picker.current?.click()}>
        Upload
      </Button>
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={(event) => {
          void store([...(event.target.files ?? [])], true);
          event.target.value = "";
        }}
      />
      {existing.length > 0 && (
        <Dialog title={existing.length === 1 ? "Replace the file?" : `Replace ${existing.length} files?`} onClose={() => setExisting([])}>
          <p>{existing.length === 1 ? "There is something of this name already:" : "There is something of these names already:"}</p>
          <ul className="revert-paths">
            {existing.map(({ name }) => <li key={name}><code><Visible>{name}</Visible></code></li>)}
          </ul>
          <p className="field-hint">What is there is lost, unless git or a checkpoint has it.</p>
          <div className="dialog-actions">
            <Button onClick={() => setExisting([])}>Keep what is there</Button>
            <Button look="danger" onClick={() => void store(existing, false)}>Replace</Button>
          </div>
        </Dialog>
      )}
    </>
  );
}
