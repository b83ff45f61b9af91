/** All that is one's own as one archive, and how an account is deleted. */
import { Exports } from "./exports.tsx";
import { ownExports } from "./sources.ts";

export default function AccountSection() {
  return (
    <>
      <p className="export-words">
        An export is one ZIP file with all that is yours: your chats with their messages and files, the files of your workspaces,
        your settings, skills, schedules and usage, and what is known of your keys and sessions. Values of keys and secrets are not in it.
      </p>
      <Exports source={ownExports} label="Export all that is mine" />
      <div className="section-part">
        <h3 className="section-part-title">Delete the account</h3>
        <p>
          An administrator deletes accounts. Export what you want to keep first: your chats, files, workspaces, keys and secrets are
          deleted with the account, and that cannot be undone.
        </p>
      </div>
    </>
  );
}
