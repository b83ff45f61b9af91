/** Times, sums and sizes as people read them. */
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "narrow" });
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const BINARY = [[1024 ** 4, "TiB"], [1024 ** 3, "GiB"], [1024 ** 2, "MiB"]] as const;

export function ago(at: string | null | undefined, now: number): string {
  if (!at) return "";
  const passed = now - Date.parse(at);
  // Clocks differ; nothing is from the future.
  if (passed < MINUTE) return "now";
  if (passed < HOUR) return relative.format(-Math.floor(passed / MINUTE), "minute");
  if (passed < DAY) return relative.format(-Math.floor(passed / HOUR), "hour");
  if (passed < 7 * DAY) return relative.format(-Math.floor(passed / DAY), "day");
  return new Date(at).toLocaleDateString(undefined, { day: "numeric", month: "short" });
}

const long = new Intl.RelativeTimeFormat("en", { numeric: "always" });

/** How long it is until a time, as "in 3 hours". */
export function ahead(at: string | number, now: number): string {
  const left = (typeof at === "number" ? at : Date.parse(at)) - now;
  if (left <= 0) return "now";
  // Rounded up at each step: nothing is allowed before it is.
  if (left < 90_000) return long.format(Math.ceil(left / 1000), "second");
  if (left < 90 * MINUTE) return long.format(Math.ceil(left / MINUTE), "minute");
  if (left < 36 * HOUR) return long.format(Math.ceil(left / HOUR), "hour");
  return long.format(Math.ceil(left / DAY), "day");
}

/** A time of a day as people here write it. */
export function moment(at: string | number): string {
  return new Date(at).toLocaleString(undefined, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
}

/** In which group of the sidebar a time belongs. */
export function dayGroup(at: string | null | undefined, now: number): string {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const time = at ? Date.parse(at) : now;
  if (time >= midnight) return "Today";
  if (time >= midnight - DAY) return "Yesterday";
  if (time >= midnight - 6 * DAY) return "This week";
  return "Older";
}

export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  return minutes < 60
    ? units(minutes, "min", Math.round(seconds % 60), "s")
    : units(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

function units(many: number, unit: string, rest: number, smaller: string): string {
  return rest === 0 ? `${many} ${unit}` : `${many} ${unit} ${rest} ${smaller}`;
}

/** How long to wait, in whole seconds or more. */
export function waiting(ms: number): string {
  return ms <= 60_000 ? `${Math.ceil(ms / 1000)} s` : duration(Math.ceil(ms / 1000) * 1000);
}

export function money(micros: number): string {
  const dollars = micros / 1e6;
  if (micros === 0) return "$0";
  return dollars < 0.01 ? `$${dollars.toPrecision(2)}` : `$${dollars.toFixed(2)}`;
}

export function count(number: number): string {
  return number < 1000 ? String(number) : new Intl.NumberFormat("en", { notation: "compact" }).format(number);
}

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  if (size < 1024 ** 2) return `${(size / 1024).toFixed(0)} KiB`;
  const [unit, words] = BINARY.find(([least]) => size >= least)!;
  return `${Number((size / unit).toFixed(1))} ${words}`;
}

export function plural(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`;
}
