/** What is typed to use prompts (`/server:prompt name=value`) and resources (`@`) of MCP servers. */

export interface Prompt {
  /** The server's slug and its own name of the prompt. */
  name: string;
  hint: string;
  /** Names of its arguments, those that are required first. */
  arguments: readonly string[];
  fill: (given: Record<string, string>) => Promise<string>;
}

export interface Resource {
  name: string;
  hint: string;
  read: () => Promise<File>;
}

/** The resource that is being typed at the end of a text. */
export const MENTION = /(^|\s)@(\S*)$/;

const ARGUMENT = /([^\s=]+)=("[^"]*"|\S*)/g;

/** The prompts that what is typed may become. */
export function promptsFor(text: string, prompts: readonly Prompt[]): Prompt[] {
  const typed = /^\/(\S*)$/.exec(text)?.[1];
  return typed === undefined ? [] : prompts.filter((each) => each.name.startsWith(typed));
}

/** The resources whose name or address has what is typed after the last `@`. */
export function resourcesFor(text: string, resources: readonly Resource[]): Resource[] {
  const typed = MENTION.exec(text)?.[2]?.toLowerCase();
  if (typed === undefined) return [];
  return resources.filter((each) => `${each.name} ${each.hint}`.toLowerCase().includes(typed)).slice(0, 20);
}

/** The text that a prompt with arguments is filled in from. */
export function promptText(prompt: Prompt): string {
  return `/${prompt.name} ${prompt.arguments.map((each) => `${each}=`).join(" ")}`;
}

/** The prompt that a whole text stands for, with its arguments; null if it is an ordinary text. */
export function promptCall(text: string, prompts: readonly Prompt[]): { prompt: Prompt; given: Record<string, string> } | null {
  const name = /^\/(\S+)/.exec(text)?.[1];
  const prompt = prompts.find((each) => each.name === name);
  if (!prompt) return null;
  const given = [...text.slice(prompt.name.length + 1).matchAll(ARGUMENT)]
    .map(([, key, value]): [string, string] => [key!, value!.replace(/^"(.*)"$/, "$1")])
    .filter(([, value]) => value !== "");
  return { prompt, given: Object.fromEntries(given) };
}

/** The name of a file that is made from a resource. */
export function fileName(uri: string): string {
  const last = uri.split(/[?#]/)[0]!.split("/").filter(Boolean).at(-1) ?? "";
  return last.replace(/[^\w.-]+/g, "-").slice(-100) || "resource";
}
