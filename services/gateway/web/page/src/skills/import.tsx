/** Skills out of files: SKILL.md files, and ZIP archives of them; what is stored is said first. */
import { useRef, useState } from "react";
import { wordsOf } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import { plural } from "../ui/format.ts";
import { say } from "../ui/toasts.tsx";
import { Visible } from "../ui/visible.tsx";
import { type ArchiveEntry, ArchiveRefused, entriesOf } from "./archive.ts";
import { refreshSkills, storeSkill } from "./queries.ts";
import { type FoundSkills, SKILL_BYTES_MAX, SKILL_FILE, skillsIn } from "./skill-file.ts";

/** Names of further files that are listed. */
const SKIPPED_SHOWN_MAX = 5;

async function read(files: readonly File[]): Promise<FoundSkills> {
  const entries: ArchiveEntry[] = [];
  for (const file of files) {
    if (/\.zip$/i.test(file.name)) {
      entries.push(...(await entriesOf(file, SKILL_BYTES_MAX, (path) => path.split("/").at(-1) === SKILL_FILE)));
    } else if (file.size > SKILL_BYTES_MAX) {
      throw new ArchiveRefused(`${file.name} has more than ${SKILL_BYTES_MAX} bytes.`);
    } else entries.push({ path: SKILL_FILE, text: await file.text() });
  }
  const found = skillsIn(entries);
  if (found.skills.length === 0) throw new ArchiveRefused(`There is no ${SKILL_FILE} in it.`);
  return found;
}

export function ImportSkills({ known }: { known: readonly string[] }) {
  const picker = useRef<HTMLInputElement>(null);
  const [found, setFound] = useState<FoundSkills | null>(null);
  const [problems, setProblems] = useState<readonly string[]>([]);
  const [isBusy, setBusy] = useState(false);

  async function choose(files: readonly File[]): Promise<void> {
    setFound(null);
    setProblems([]);
    try {
      setFound(await read(files));
    } catch (error) {
      setProblems([wordsOf(error)]);
    }
  }

  /** Store each by itself: one that is refused does not keep the others away. */
  async function store({ skills }: FoundSkills): Promise<void> {
    setBusy(true);
    const refused: string[] = [];
    for (const { name, content } of skills) {
      try {
        await storeSkill(name, content);
      } catch (error) {
        refused.push(`${name}: ${wordsOf(error)}`);
      }
    }
    await refreshSkills();
    setBusy(false);
    setFound(null);
    setProblems(refused);
    if (refused.length < skills.length) say(`Stored ${plural(skills.length - refused.length, "skill")}.`);
  }

  return (
    <div className="section-part">
      <div className="form-actions">
        <Button icon="file" disabled={isBusy} onClick={() => picker.current?.click()}>Import files…</Button>
      </div>
      <p className="field-hint">SKILL.md files, or ZIP archives with a SKILL.md in the directory of each skill.</p>
      <input
        ref={picker}
        type="file"
        accept=".md,.zip"
        multiple
        hidden
        aria-label="Files with skills"
        onChange={(event) => {
          void choose([...(event.target.files ?? [])]);
          event.target.value = "";
        }}
      />
      {problems.map((each) => <p key={each} className="field-problem" role="alert"><Visible>{each}</Visible></p>)}
      {found && (
        <div role="group" aria-label="Skills to import">
          <ul>
            {found.skills.map(({ name }) => (
              <li key={name}>
                {name} {known.includes(name) && <span className="badge is-warn">replaces yours</span>}
              </li>
            ))}
          </ul>
          {found.skipped.length > 0 && (
            <p className="field-hint">
              Skills of a person have no other files, so {plural(found.skipped.length, "file is", "files are")} left out:{" "}
              <Visible>{found.skipped.slice(0, SKIPPED_SHOWN_MAX).join(", ")}</Visible>
              {found.skipped.length > SKIPPED_SHOWN_MAX ? " …" : "."}
            </p>
          )}
          <div className="form-actions">
            <Button look="primary" disabled={isBusy} onClick={() => void store(found)}>
              {isBusy ? "Storing…" : `Store ${plural(found.skills.length, "skill")}`}
            </Button>
            <Button disabled={isBusy} onClick={() => setFound(null)}>Cancel</Button>
          </div>
        </div>
      )}
    </div>
  );
}
