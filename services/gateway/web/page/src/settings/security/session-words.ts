/** Sessions in words. */
import type { components } from "../../api/schema.d.ts";

export const METHODS: Record<components["schemas"]["SignInMethod"], string> = {
  login_link: "The link that parley up printed",
  sign_in_link: "A link of an administrator",
  password: "Password",
  passkey: "Passkey",
  oidc: "Identity provider",
};

/** From the most special: Edge and Opera also call themselves Chrome, and Chrome calls itself Safari. */
const BROWSERS: readonly (readonly [RegExp, string])[] = [
  [/Edg(?:e|A|iOS)?\//, "Edge"],
  [/OPR\//, "Opera"],
  [/Firefox\/|FxiOS\//, "Firefox"],
  [/Chrome\/|CriOS\/|HeadlessChrome\//, "Chrome"],
  [/Safari\//, "Safari"],
];
const SYSTEMS: readonly (readonly [RegExp, string])[] = [
  [/iPhone|iPad/, "iOS"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/Mac OS X|Macintosh/, "macOS"],
  [/CrOS/, "ChromeOS"],
  [/Linux/, "Linux"],
];

/** Name the browser and the system of what a browser calls itself; what is neither is told as it is. */
export function browserWords(agent: string): string {
  const found = (names: typeof BROWSERS) => names.find(([pattern]) => pattern.test(agent))?.[1];
  const browser = found(BROWSERS);
  if (!browser) return agent || "Unknown";
  const system = found(SYSTEMS);
  return system ? `${browser} on ${system}` : browser;
}
