/** A difference of one file, unified or side by side; a comment on a line goes to the composer. */
import { memo, type ReactNode, useMemo, useState } from "react";
import { linesOf } from "../cards/diff.tsx";
import { refer } from "../composer/references.ts";
import { Button } from "../ui/button.tsx";
import { Visible } from "../ui/visible.tsx";
import { type DiffLine, sidesOf } from "./sides.ts";

const LINES_STEP = 400;
const SIGNS = { added: "+", deleted: "−", same: " ", place: "" };

interface PatchViewProps {
  path: string;
  patch: string;
  isSideBySide: boolean;
  canComment: boolean;
}

export const PatchView = memo(function PatchView({ path, patch, isSideBySide, canComment }: PatchViewProps) {
  const [limit, setLimit] = useState(LINES_STEP);
  const [commented, setCommented] = useState<DiffLine | null>(null);
  const lines = useMemo(() => linesOf(patch), [patch]);
  const shown = lines.slice(0, limit);
  const onComment = canComment ? setCommented : null;
  const form = (line: DiffLine | null, columns: number): ReactNode =>
    line !== null && line === commented ? (
      <tr>
        <td colSpan={columns}>
          <Comment path={path} line={line} onDone={() => setCommented(null)} />
        </td>
      </tr>
    ) : null;
  return (
    <div className="diff" tabIndex={0} role="region" aria-label={`Changes of ${path}`}>
      <table className={isSideBySide ? "is-sides" : ""}>
        <tbody>
          {isSideBySide
            ? sidesOf(shown).flatMap(({ before, after }, index) => [
                <tr key={index}>
                  <Cells line={before} onComment={before === after ? null : onComment} />
                  <Cells line={after} onComment={onComment} />
                </tr>,
                <Comments key={`c${index}`}>{form(after, 6) ?? form(before, 6)}</Comments>,
              ])
            : shown.flatMap((line, index) => [
                <tr key={index} className={`is-${line.kind}`}>
                  <Cells line={line} onComment={onComment} />
                </tr>,
                <Comments key={`c${index}`}>{form(line, 3)}</Comments>,
              ])}
        </tbody>
      </table>
      {lines.length > limit && (
        <Button small look="quiet" onClick={() => setLimit(limit + LINES_STEP)}>
          Show more of {lines.length - limit} lines
        </Button>
      )}
    </div>
  );
});

function Comments({ children }: { children: ReactNode }) {
  return children;
}

interface CellsProps {
  line: DiffLine | null;
  onComment: ((line: DiffLine) => void) | null;
}

function Cells({ line, onComment }: CellsProps) {
  if (!line) return <td colSpan={3} className="diff-none" />;
  const kind = `is-${line.kind}`;
  return (
    <>
      <td className={`diff-number ${kind}`}>
        {line.number !== null && onComment ? (
          <button type="button" className="diff-comment" aria-label={`Comment on line ${line.number}`} onClick={() => onComment(line)}>
            {line.number}
          </button>
        ) : (
          (line.number ?? "")
        )}
      </td>
      <td className={`diff-sign ${kind}`}>{SIGNS[line.kind]}</td>
      <td className={`diff-text ${kind}`}>
        <Visible>{line.text}</Visible>
      </td>
    </>
  );
}

interface CommentProps {
  path: string;
  line: DiffLine;
  onDone: () => void;
}

function Comment({ path, line, onDone }: CommentProps) {
  const [text, setText] = useState("");
  const number = line.number ?? 1;
  return (
    <form
      className="diff-comment-form"
      onSubmit={(event) => {
        event.preventDefault();
        refer({ fileName: path, startLine: number, endLine: number, content: line.text, comment: text.trim() });
        onDone();
      }}
    >
      <textarea
        autoFocus
        rows={2}
        aria-label={`Comment on line ${number} of ${path}`}
        maxLength={4000}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onDone();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
        }}
      />
      <div className="section-bar">
        <Button small look="primary" type="submit">
          Add to the message
        </Button>
        <Button small onClick={onDone}>
          Cancel
        </Button>
      </div>
    </form>
  );
}
