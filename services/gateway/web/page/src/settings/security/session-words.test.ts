import { expect, test } from "vitest";
import { browserWords } from "./session-words.ts";

const MOZILLA = "Mozilla/5.0";

test.each([
  [`${MOZILLA} (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36`, "Chrome on Linux"],
  [`${MOZILLA} (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0`, "Edge on Windows"],
  [`${MOZILLA} (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Version/19.0 Mobile/15E148 Safari/604.1`, "Safari on iOS"],
  [`${MOZILLA} (Android 16; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0`, "Firefox on Android"],
  ["curl/8.5", "curl/8.5"],
  ["", "Unknown"],
])("%s is called %s", (agent, words) => expect(browserWords(agent)).toBe(words));
