/** What is typed to have a skill used: `/` and its name, at the start of a word. */

export interface Skill {
  name: string;
  description: string;
  /** Whether it is a file of the workspace, and not one of the person's own. */
  isOfWorkspace: boolean;
}

/** A name that is being typed at the end of a text; paths and addresses have more before it. */
const TYPED = /(^|\s)\/([\w:-]*)$/;

export function typesSkill(text: string): boolean {
  return TYPED.test(text);
}

/** The skills that what is typed may become: those that begin so first, then those that contain it. */
export function skillsFor(text: string, skills: readonly Skill[]): Skill[] {
  const typed = TYPED.exec(text)?.[2]?.toLowerCase();
  if (typed === undefined) return [];
  const found = skills.filter((each) => each.name.toLowerCase().includes(typed));
  return found.toSorted((a, b) => Number(b.name.startsWith(typed)) - Number(a.name.startsWith(typed)));
}

/** The text with the skill in place of what was typed for it. */
export function withSkill(text: string, skill: Skill): string {
  return text.replace(TYPED, (_, before: string, __, at: number) =>
    at === 0 && before === "" ? `Use the skill ${skill.name}: ` : `${before}the skill ${skill.name} `,
  );
}
