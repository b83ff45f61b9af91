/** Files of text that were attached: their words can be read where they are named. */
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { problemOf } from "../api/problem.ts";
import { send } from "../api/transport.ts";
import { Loaded } from "../forms/loaded.tsx";
import { Markdown } from "../markdown/markdown.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { Icon } from "../ui/icon.tsx";
import { Visible } from "../ui/visible.tsx";

/** Of a longer file the beginning is shown. */
const SHOWN_BYTES_MAX = 200_000;
const TEXTS = new Set(["text/plain", "text/markdown", "text/csv", "application/json"]);

export function isText(mediaType: string | null | undefined): boolean {
  return TEXTS.has((mediaType ?? "").split(";")[0]!);
}

interface TextFile {
  id: string;
  name: string;
  mediaType: string;
}

/** The name of a file of text, which opens it. */
export function TextButton({ file }: { file: TextFile }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" className="text-button" aria-label={`Read ${file.name}`} onClick={() => setOpen(true)}>
        <Icon name="file" />
        <Visible>{file.name}</Visible>
      </button>
      {isOpen && <TextDialog file={file} onClose={() => setOpen(false)} />}
    </>
  );
}

function TextDialog({ file, onClose }: { file: TextFile; onClose: () => void }) {
  const address = `/api/v1/files/${file.id}`;
  const text = useQuery({ queryKey: ["file", file.id], queryFn: () => read(address), staleTime: Number.POSITIVE_INFINITY });
  return (
    <Dialog title={file.name} wide onClose={onClose}>
      <Loaded query={text} what="file">
        {({ words, isWhole }) => (
          <>
            {file.mediaType.startsWith("text/markdown") ? (
              <div className="text-preview" tabIndex={0}><Markdown text={words} /></div>
            ) : (
              <pre className="text-preview terminal-output" tabIndex={0}><Visible>{words}</Visible></pre>
            )}
            {!isWhole && <p className="field-hint">This is its beginning. Download it to read on.</p>}
          </>
        )}
      </Loaded>
      <div className="dialog-actions">
        <a className="button" href={address} download={file.name}>Download</a>
        <button type="button" className="button" autoFocus onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

async function read(address: string): Promise<{ words: string; isWhole: boolean }> {
  const headers = { Range: `bytes=0-${SHOWN_BYTES_MAX - 1}` };
  const answer = await send(new Request(new URL(address, location.origin), { headers }));
  if (!answer.ok) throw await problemOf(answer);
  const size = Number(/\/(\d+)$/.exec(answer.headers.get("Content-Range") ?? "")?.[1] ?? 0);
  return { words: await answer.text(), isWhole: size <= SHOWN_BYTES_MAX };
}
