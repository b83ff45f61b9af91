/** The form that a server asks to fill in: its fields, what was typed, and the content of the answer. */
import { record, string } from "../cards/outcome.ts";

export type FieldKind = "text" | "email" | "uri" | "date" | "date-time" | "number" | "integer" | "boolean" | "choice" | "choices" | "lines";

export interface FormField {
  name: string;
  label: string;
  description: string;
  kind: FieldKind;
  isRequired: boolean;
  /** Values to choose from, each with its words. */
  options: readonly { value: unknown; words: string }[];
  /** Of the value, its length, or how many are chosen. */
  least: number | undefined;
  most: number | undefined;
  initial: Typed;
}

/** What is in a field: a text, a mark, or lines; of choices the places in the options. */
export type Typed = string | boolean | readonly string[];

/** Words that ask for what a server must not ask in a form. */
const SECRET = /pass(word|phrase|code)|secret|token|api.?key|credential|private.?key|card.?number|\b(cvv|cvc|otp|pin)\b/i;

const BOUNDS = new Map<unknown, readonly [string, string]>([
  ["string", ["minLength", "maxLength"]],
  ["number", ["minimum", "maximum"]],
  ["integer", ["minimum", "maximum"]],
  ["array", ["minItems", "maxItems"]],
]);

export function fieldsOf(schema: unknown): FormField[] {
  const { properties, required } = record(schema);
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(record(properties)).map(([name, given]) => fieldOf(name, record(given), needed.includes(name)));
}

function fieldOf(name: string, given: Record<string, unknown>, isRequired: boolean): FormField {
  const options = optionsOf(given.type === "array" ? record(given.items) : given);
  const kind = kindOf(given, options.length > 0);
  const [low, high] = BOUNDS.get(given.type) ?? ["", ""];
  return {
    name,
    label: string(given.title) || name,
    description: string(given.description),
    kind,
    isRequired,
    options,
    least: numberOf(given[low]),
    most: numberOf(given[high]),
    initial: initialOf(kind, given.default, options),
  };
}

function kindOf(given: Record<string, unknown>, hasOptions: boolean): FieldKind {
  if (given.type === "array") return hasOptions ? "choices" : "lines";
  if (given.type === "boolean") return "boolean";
  if (hasOptions) return "choice";
  if (given.type === "number" || given.type === "integer") return given.type;
  const format = string(given.format);
  return format === "email" || format === "uri" || format === "date" || format === "date-time" ? format : "text";
}

function optionsOf(given: Record<string, unknown>): FormField["options"] {
  if (Array.isArray(given.enum)) {
    const names = Array.isArray(given.enumNames) ? given.enumNames : [];
    return given.enum.map((value: unknown, index) => ({ value, words: string(names[index]) || string(value) }));
  }
  const titled = given.oneOf ?? given.anyOf;
  return (Array.isArray(titled) ? titled : [])
    .map(record)
    .filter((each) => "const" in each)
    .map((each) => ({ value: each.const, words: string(each.title) || string(each.const) }));
}

function initialOf(kind: FieldKind, given: unknown, options: FormField["options"]): Typed {
  const placeOf = (value: unknown): string[] => {
    const place = options.findIndex((each) => each.value === value);
    return place < 0 ? [] : [String(place)];
  };
  if (kind === "boolean") return given === true;
  if (kind === "choice") return placeOf(given)[0] ?? "";
  const several = Array.isArray(given) ? given : [];
  if (kind === "choices") return several.flatMap(placeOf);
  if (kind === "lines") return several.map(string).join("\n");
  if (kind === "date-time") return localTime(string(given));
  return string(given);
}

/** Return a time as the field of browsers has it: in the zone of the person, without naming that. */
function localTime(given: string): string {
  const at = new Date(given);
  if (Number.isNaN(at.getTime())) return "";
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/** Whether a field asks for something that should not be given to a server in a form. */
export function looksSecret(field: FormField): boolean {
  return SECRET.test(`${field.name.replaceAll("_", " ")} ${field.name} ${field.label}`);
}

export type Values = Readonly<Record<string, Typed>>;

export function initialValues(fields: readonly FormField[]): Values {
  return Object.fromEntries(fields.map((each) => [each.name, each.initial]));
}

export interface Filled {
  content: Record<string, unknown>;
  /** What is wrong, by the name of the field. */
  problems: Record<string, string>;
}

/** Return the content of the answer, and which fields do not fit; empty optional fields are left out. */
export function filled(fields: readonly FormField[], values: Values): Filled {
  const content: [string, unknown][] = [];
  const problems: [string, string][] = [];
  for (const field of fields) {
    const value = valueOf(field, values[field.name] ?? "");
    const problem = problemOf(field, value);
    if (problem) problems.push([field.name, problem]);
    else if (value !== undefined) content.push([field.name, value]);
  }
  return { content: Object.fromEntries(content), problems: Object.fromEntries(problems) };
}

/** Return what a field means; undefined if it is empty. */
function valueOf(field: FormField, typed: Typed): unknown {
  if (typeof typed === "boolean") return typed;
  if (field.kind === "choice") return field.options[typed === "" ? -1 : Number(typed)]?.value;
  if (typeof typed !== "string") return typed.length > 0 ? typed.map((each) => field.options[Number(each)]?.value) : undefined;
  if (typed === "") return undefined;
  if (field.kind === "lines") return typed.split("\n").filter((each) => each !== "");
  if (field.kind === "number" || field.kind === "integer") return Number(typed.trim() || Number.NaN);
  if (field.kind === "date-time") return Number.isNaN(Date.parse(typed)) ? typed : new Date(typed).toISOString();
  return typed;
}

function problemOf(field: FormField, value: unknown): string {
  if (value === undefined) return field.isRequired ? "Fill this in." : "";
  if (typeof value === "number") {
    if (!Number.isFinite(value)) return "Write a number.";
    if (field.kind === "integer" && !Number.isInteger(value)) return "Write a whole number.";
    return boundsProblem(field, value, "");
  }
  if (Array.isArray(value)) return boundsProblem(field, value.length, " entries");
  if (typeof value !== "string" || field.kind === "choice") return "";
  // The length is counted in characters as the server does.
  return formatProblem(field.kind, value) || boundsProblem(field, [...value].length, " characters");
}

function boundsProblem({ least, most }: FormField, value: number, unit: string): string {
  if (least !== undefined && value < least) return `At least ${least}${unit}.`;
  if (most !== undefined && value > most) return `At most ${most}${unit}.`;
  return "";
}

function formatProblem(kind: FieldKind, value: string): string {
  if (kind === "email" && !/^[^\s@]+@[^\s@]+$/.test(value)) return "Write an address such as ann@example.com.";
  if (kind === "uri" && !URL.canParse(value)) return "Write a whole address such as https://example.com.";
  if (kind === "date" && !/^\d{4}-\d{2}-\d{2}$/.test(value)) return "Write a date.";
  if (kind === "date-time" && Number.isNaN(Date.parse(value))) return "Write a date and a time.";
  return "";
}

/** Where a field is in the body of the answer, as problems name it. */
export function pointerOf(name: string): string {
  return `/content/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
