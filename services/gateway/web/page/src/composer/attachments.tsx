/** What goes along with a message: comments on lines, files, and files that are on their way. */
import { useEffect, useState } from "react";
import { isPicture, PictureButton } from "../pictures/lightbox.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { bytes } from "../ui/format.ts";
import { Icon } from "../ui/icon.tsx";
import { Visible } from "../ui/visible.tsx";
import type { DraftFile } from "./drafts.ts";
import type { Pending, Uploads } from "../uploads/pending.ts";
import { isText, TextButton } from "../uploads/text-preview.tsx";
import { type Reference, referenceName } from "./references.ts";

interface ReferencesProps {
  references: readonly Reference[];
  onRemove: (place: number) => void;
}

export function References({ references, onRemove }: ReferencesProps) {
  if (references.length === 0) return null;
  return (
    <ul className="attachments" aria-label="Comments on lines">
      {references.map((each, place) => (
        <li key={`${place}${referenceName(each)}`} className="file-chip">
          <Icon name="chat" />
          {referenceName(each)} <span className="card-note">{each.comment.slice(0, 60)}</span>
          <IconButton icon="close" label={`Remove the comment on ${referenceName(each)}`} onClick={() => onRemove(place)} />
        </li>
      ))}
    </ul>
  );
}

interface FilesProps {
  files: readonly DraftFile[];
  uploads: Uploads;
  onRemove: (id: string) => void;
}

export function Files({ files, uploads, onRemove }: FilesProps) {
  if (files.length === 0 && uploads.pending.length === 0) return null;
  const pictures = files.filter((each) => isPicture(each.mediaType)).map((each) => ({ address: `/api/v1/files/${each.id}`, name: each.name }));
  return (
    <ul className="attachments" aria-label="Attached files">
      {files.map((file) =>
        isPicture(file.mediaType) ? (
          <li key={file.id} className="tile">
            <PictureButton pictures={pictures} address={`/api/v1/files/${file.id}`} />
            <IconButton className="tile-remove" icon="close" label={`Remove ${file.name}`} onClick={() => onRemove(file.id)} />
          </li>
        ) : (
          <li key={file.id} className="file-chip">
            {isText(file.mediaType) ? (
              <TextButton file={file} />
            ) : (
              <>
                <Icon name="file" />
                <Visible>{file.name}</Visible>
              </>
            )}{" "}
            <span className="card-note">{bytes(file.sizeBytes)}</span>
            <IconButton icon="close" label={`Remove ${file.name}`} onClick={() => onRemove(file.id)} />
          </li>
        ),
      )}
      {uploads.pending.map((each) => <PendingTile key={each.key} pending={each} uploads={uploads} />)}
    </ul>
  );
}

function PendingTile({ pending, uploads }: { pending: Pending; uploads: Uploads }) {
  const { file, key, share, problem } = pending;
  const preview = usePreview(file);
  return (
    <li className={`tile is-pending${problem ? " is-failed" : ""}`}>
      {preview ? <img className="tile-picture" src={preview} alt="" /> : <span className="tile-file"><Icon name="file" /><Visible>{file.name}</Visible></span>}
      {problem ? (
        <div className="tile-problem" role="alert">
          <span>{file.name}: {problem}</span>
          <Button small onClick={() => uploads.retry(key)}>Retry</Button>
        </div>
      ) : (
        <progress className="tile-progress" max={1} value={share} aria-label={`Storing ${file.name}`} />
      )}
      <IconButton className="tile-remove" icon="close" label={`Remove ${file.name}`} onClick={() => uploads.remove(key)} />
    </li>
  );
}

/** The address of a picture that is still in the browser alone; null for other files. */
function usePreview(file: File): string | null {
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    if (!isPicture(file.type)) return;
    const made = URL.createObjectURL(file);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [file]);
  return address;
}
