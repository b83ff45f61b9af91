/** The files that a turn changed: what it did to each, and each as the turn left it or found it. */
import "./turns.css";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { answered, api } from "../api/client.ts";
import type { components } from "../api/schema.d.ts";
import type { Message } from "../api/types.ts";
import { Loaded } from "../forms/loaded.tsx";
import { PatchView } from "../diffs/patch-view.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { bytes, plural } from "../ui/format.ts";
import { Notice } from "../ui/states.tsx";
import { Visible } from "../ui/visible.tsx";

type TurnFile = components["schemas"]["TurnFile"];
type Side = "patch" | "after" | "before";

/** Of more files than these only the names are shown at first. */
const OPEN_FILES_MAX = 10;

interface Props {
  chatId: string;
  message: Message;
  onClose: () => void;
}

export default function FilesDialog({ chatId, message, onClose }: Props) {
  const path = { chat_id: chatId, turn_id: message.id };
  const query = useQuery({
    queryKey: ["turn-files", chatId, message.id],
    queryFn: ({ signal }) => answered(api.GET("/api/v1/chats/{chat_id}/turns/{turn_id}/files", { params: { path }, signal })),
    staleTime: 0,
  });
  return (
    <Dialog title="Files that this turn changed" wide onClose={onClose}>
      <Loaded query={query} what="list of files">
        {({ files, omitted, incomplete }) => (
          <div className="turn-files">
            {incomplete && <Notice kind="warn">Some changes of this turn are not known, or are not kept any more.</Notice>}
            {files.length === 0 && <p className="panel-note">No changes of this turn are known. Old ones are kept for a while only.</p>}
            {files.map((each) => (
              <OneFile key={each.path} chatId={chatId} turnId={message.id} file={each} isOpen={files.length <= OPEN_FILES_MAX} />
            ))}
            {omitted > 0 && <p className="panel-note">{plural(omitted, "file")} more</p>}
          </div>
        )}
      </Loaded>
      <div className="dialog-actions">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

interface OneFileProps {
  chatId: string;
  turnId: number;
  file: TurnFile;
  isOpen: boolean;
}

function OneFile({ chatId, turnId, file, isOpen }: OneFileProps) {
  const [side, setSide] = useState<Side>("patch");
  const sides: [Side, string][] = [["patch", "Difference"]];
  if (file.readable) sides.push(["after", "After the turn"]);
  if (file.change !== "created") sides.push(["before", "Before the turn"]);
  return (
    <details className="panel-file" open={isOpen}>
      <summary>
        <Visible>{file.path}</Visible>
        <span className="badge">{file.change}</span>
        {file.patch && (
          <span>
            <span className="lines-added">+{file.added_lines}</span> <span className="lines-deleted">−{file.deleted_lines}</span>
          </span>
        )}
        {file.shared && <span className="badge is-warn">others may have changed it too</span>}
      </summary>
      <div className="turn-sides" role="group" aria-label={`What to show of ${file.path}`}>
        {sides.map(([name, words]) => (
          <Button key={name} className="toggle" small look="quiet" aria-pressed={side === name} onClick={() => setSide(name)}>
            {words}
          </Button>
        ))}
      </div>
      {side === "patch" ? (
        <Difference file={file} />
      ) : (
        <Content chatId={chatId} turnId={turnId} path={file.path} isBefore={side === "before"} />
      )}
    </details>
  );
}

function Difference({ file }: { file: TurnFile }) {
  if (!file.patch) return <p className="panel-note turn-note">There is no difference to show: it is not text, too long, or not kept.</p>;
  return <PatchView path={file.path} patch={file.patch} isSideBySide={false} canComment={false} />;
}

interface ContentProps {
  chatId: string;
  turnId: number;
  path: string;
  isBefore: boolean;
}

function Content({ chatId, turnId, path, isBefore }: ContentProps) {
  const params = { path: { chat_id: chatId, turn_id: turnId }, query: { path, before: isBefore } };
  const query = useQuery({
    queryKey: ["turn-file", chatId, turnId, path, isBefore],
    queryFn: ({ signal }) => answered(api.GET("/api/v1/chats/{chat_id}/turns/{turn_id}/files/content", { params, signal })),
  });
  return (
    <Loaded query={query} what="content">
      {(data) =>
        data.binary ? (
          <p className="panel-note turn-note">It is not text; it has {bytes(data.size_bytes)}.</p>
        ) : (
          <>
            <pre className="preview" tabIndex={0} aria-label={`${path} ${isBefore ? "before" : "after"} the turn`}>
              <Visible>{data.content}</Visible>
            </pre>
            {data.truncated && <p className="panel-note turn-note">It is longer than is shown here: {bytes(data.size_bytes)}.</p>}
          </>
        )
      }
    </Loaded>
  );
}
