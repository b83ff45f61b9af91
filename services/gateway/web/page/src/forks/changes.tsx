/** The changes of a fork, file by file. */
import { PatchView } from "../diffs/patch-view.tsx";
import { plural } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { type Applied, appliedWithoutText, extentOf, pathsWithoutText, type Report } from "./reports.ts";

/** Of more files than these only the names are shown at first. */
const OPEN_FILES_MAX = 5;

export function ForkExtent({ report }: { report: Report }) {
  const { files, added, deleted } = extentOf(report);
  return (
    <span>
      {plural(files, "file")} <span className="lines-added">+{added}</span> <span className="lines-deleted">−{deleted}</span>
    </span>
  );
}

export function ForkChanges({ report }: { report: Report }) {
  const { patches, conflicts, merged_paths: paths, omitted } = report;
  const isUnchanged = paths.length + conflicts.length + omitted === 0;
  if (isUnchanged && report.applied_merges.length === 0) return <p className="panel-note">Nothing was changed.</p>;
  return (
    <>
      {isUnchanged && <p className="panel-note">All changes were applied.</p>}
      <Patches patches={patches} without={pathsWithoutText(report)} />
      <Conflicts report={report} />
      {report.left_out_paths.length > 0 && (
        <p className="panel-note">{plural(report.left_out_paths.length, "path")} left out, such as <code><Visible>{report.left_out_paths[0] ?? ""}</Visible></code></p>
      )}
      {omitted > 0 && <p className="panel-note">{plural(omitted, "file")} more</p>}
      {report.applied_merges.map((each) => <AppliedChanges key={each.applied_at} applied={each} />)}
    </>
  );
}

/** A merge that was applied: when, how many files, and what it changed. */
function AppliedChanges({ applied }: { applied: Applied }) {
  const at = applied.applied_at ? new Date(applied.applied_at).toLocaleString() : "before";
  const title = `Applied ${at}, ${plural(applied.paths.length + applied.omitted, "file")}`;
  return (
    <section aria-label={title}>
      <h3 className="card-heading">{title}</h3>
      <Patches patches={applied.patches} without={appliedWithoutText(applied)} />
    </section>
  );
}

function Patches({ patches, without }: { patches: Report["patches"]; without: string[] }) {
  return (
    <>
      {patches.map((each) => (
        <details key={each.path} className="panel-file" open={patches.length <= OPEN_FILES_MAX}>
          <summary><Visible>{each.path}</Visible></summary>
          <PatchView path={each.path} patch={each.patch} isSideBySide={false} canComment={false} />
        </details>
      ))}
      {without.map((path) => (
        <p key={path} className="panel-note"><code><Visible>{path}</Visible></code> was changed; there is no text to show.</p>
      ))}
    </>
  );
}

export function Conflicts({ report }: { report: Report }) {
  return report.conflicts.map((each) => (
    <details key={each.path} className="panel-file">
      <summary>
        <Visible>{each.path}</Visible> <span className="badge is-warn">conflict: {(each.kind ?? "unknown").replaceAll("_", " ")}</span>
      </summary>
      {each.preview && <pre className="preview" tabIndex={0} aria-label={`Both versions of ${each.path}`}><Visible>{each.preview}</Visible></pre>}
    </details>
  ));
}
