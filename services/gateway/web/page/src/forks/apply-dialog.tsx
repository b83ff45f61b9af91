/** Applying the changes of a fork; conflicts are decided for all files in one way. */
import { useState } from "react";
import { useSaving } from "../forms/form.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { plural } from "../ui/format.ts";
import { Notice } from "../ui/states.tsx";
import { Conflicts } from "./changes.tsx";
import type { Report, Strategy } from "./reports.ts";

interface Props {
  title: string;
  /** What is about to happen. */
  text: string;
  apply: (strategy: Strategy) => Promise<Report>;
  onClose: () => void;
}

export function ApplyDialog({ title, text, apply, onClose }: Props) {
  const [report, setReport] = useState<Report>();
  const saving = useSaving();
  const isStopped = report !== undefined && !report.applied && report.conflicts.length > 0;
  const isDone = report !== undefined && !isStopped;

  function run(strategy: Strategy): void {
    void saving.save(async () => setReport(await apply(strategy)));
  }

  return (
    <Dialog title={title} wide onClose={onClose}>
      {report === undefined && <p>{text}</p>}
      {isDone && (
        <div role="status">
          <Notice icon="check" title={`${plural(report.merged_paths.length, "file was", "files were")} written`}>
            {report.merged_paths.slice(0, 20).join(", ")}
            {report.merged_paths.length > 20 ? " …" : ""}
          </Notice>
        </div>
      )}
      {isStopped && (
        <Notice kind="warn" alert title={`${plural(report.conflicts.length, "file is", "files are")} in conflict; nothing was applied`}>
          The workspace has changed in the same places since. Choose whose version of these files holds.
        </Notice>
      )}
      {report && <Conflicts report={report} />}
      {saving.problem && <p className="field-problem" role="alert">{saving.problem}</p>}
      <div className="dialog-actions">
        <Button onClick={onClose}>{isDone ? "Close" : "Cancel"}</Button>
        {report === undefined && (
          <Button look="primary" disabled={saving.isBusy} onClick={() => run("report")}>
            {saving.isBusy ? "Applying…" : "Apply"}
          </Button>
        )}
        {isStopped && (
          <>
            <Button disabled={saving.isBusy} onClick={() => run("keep_parent")}>Keep the workspace's version</Button>
            <Button look="primary" disabled={saving.isBusy} onClick={() => run("take_fork")}>Take the new version</Button>
          </>
        )}
      </div>
    </Dialog>
  );
}
