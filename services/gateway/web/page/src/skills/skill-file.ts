/** Skills as files: the text of a SKILL.md, and what of several files is stored. */
import { type ArchiveEntry, ArchiveRefused } from "./archive.ts";
import { skillName } from "./name.ts";

export const SKILL_FILE = "SKILL.md";
export const SKILL_BYTES_MAX = 64 * 1024;
export const SKILLS_MAX = 100;

interface Named {
  name: string;
  description: string;
  body: string | null;
}

/** Return the SKILL.md of a stored skill; read again it gives the same skill. */
export function skillContent({ name, description, body }: Named): string {
  return `---\nname: ${name}\ndescription: ${quoted(description)}\n---\n${body ?? ""}`;
}

/** Quote a value so that one pair of quotes is taken away, and colons stay part of it. */
function quoted(text: string): string {
  const mark = ['"', "'"].find((each) => !text.includes(each));
  if (mark) return mark + text + mark;
  return /^(["']).*\1$/.test(text) ? `"${text}"` : text;
}

export interface FoundSkills {
  skills: readonly { name: string; content: string }[];
  /** Names of files that belong to no skill of a person. */
  skipped: readonly string[];
}

/** Return the skills among the files of an archive; throw `ArchiveRefused` if one is none. */
export function skillsIn(entries: readonly ArchiveEntry[]): FoundSkills {
  const skipped = entries.filter((each) => fileOf(each.path) !== SKILL_FILE).map((each) => each.path);
  const skills = entries.filter((each) => fileOf(each.path) === SKILL_FILE).map(({ path, text }) => {
    const name = skillName(text);
    const directory = path.split("/").at(-2);
    if (!name) throw new ArchiveRefused(`${path} has no line with name: in its first lines.`);
    if (directory !== undefined && directory !== name) throw new ArchiveRefused(`${path} has the name ${name}, not that of its directory.`);
    return { name, content: text };
  });
  const names = new Set(skills.map((each) => each.name));
  if (names.size < skills.length) throw new ArchiveRefused("Two files have the same name of a skill.");
  if (skills.length > SKILLS_MAX) throw new ArchiveRefused(`There are more than ${SKILLS_MAX} skills in it.`);
  return { skills, skipped };
}

function fileOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
