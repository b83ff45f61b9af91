/** The changes of a fork, file by file. */
import { PatchView } from "../panel/patch-view.tsx";
import { plural } from "../ui/format.ts";
import { Visible } from "../ui/visible.tsx";
import { extentOf, pathsWithoutText, type Report } from "./reports.ts";

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
  if (paths.length + conflicts.length + omitted === 0) return <p className="panel-note">Nothing was changed.</p>;
  return (
    <>
      {patches.map((each) => (
        <details key={each.path} className="panel-file" open={patches.length <= OPEN_FILES_MAX}>
          <summary><Visible>{each.path}</Visible></summary>
          <PatchView path={each.path} patch={each.patch} isSideBySide={false} canComment={false} />
        </details>
      ))}
      {pathsWithoutText(report).map((path) => (
        <p key={path} className="panel-note"><code><Visible>{path}</Visible></code> was changed; there is no text to show.</p>
      ))}
      <Conflicts report={report} />
      {report.left_out_paths.length > 0 && (
        <p className="panel-note">{plural(report.left_out_paths.length, "cache")} left out, such as <code><Visible>{report.left_out_paths[0] ?? ""}</Visible></code></p>
      )}
      {omitted > 0 && <p className="panel-note">{plural(omitted, "file")} more</p>}
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
