/** Icons as strokes on a grid of 24; their meaning is always in a text beside them or in a label. */
const PATHS = {
  add: "M12 5v14M5 12h14",
  archive: "M4 7h16M5 7v12h14V7M4 4h16v3H4zM10 12h4",
  arrowDown: "M12 5v14M6 13l6 6 6-6",
  arrowUp: "M12 19V5M6 11l6-6 6 6",
  attach: "M20 11.5 12 19.5a5 5 0 0 1-7-7l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8L9.8 17.3a1.7 1.7 0 0 1-2.4-2.4l7.6-7.6",
  back: "M15 5l-7 7 7 7",
  bell: "M6 16V11a6 6 0 0 1 12 0v5l1.5 2h-15zM10 20.5h4",
  branch: "M7 4v12M7 16a2 2 0 1 0 0 4 2 2 0 0 0 0-4M17 8a2 2 0 1 0 0-4 2 2 0 0 0 0 4M17 8c0 5-10 3-10 8",
  chat: "M5 5h14v10H11l-5 4v-4H5z",
  check: "M5 12.5l4.5 4.5L19 7.5",
  chevron: "M9 6l6 6-6 6",
  clock: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M12 8v4.5l3 2",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h10v11H9zM15 9V4H5v11h4",
  edit: "M5 19l1-4L16 5l3 3L9 18zM14 7l3 3",
  expand: "M14 4h6v6M20 4l-7 7M10 20H4v-6M4 20l7-7",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  filter: "M4 6h16M7 12h10M10 18h4",
  folder: "M3 6h6l2 2h10v11H3z",
  globe: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16M4 12h16M12 4c5 5 5 11 0 16M12 4c-5 5-5 11 0 16",
  key: "M14.5 4a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M10.5 13.5L4 20M7 17l2 2",
  list: "M9 6h11M9 12h11M9 18h11M4 6h.5M4 12h.5M4 18h.5",
  menu: "M4 7h16M4 12h16M4 17h16",
  more: "M5.5 12h.01M12 12h.01M18.5 12h.01",
  panel: "M4 5h16v14H4zM14 5v14",
  pause: "M9 6v12M15 6v12",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  plan: "M6 4h12v16H6zM9 9h6M9 13h6M9 17h3",
  question: "M9 9a3 3 0 1 1 4.5 2.6c-1 .6-1.5 1.2-1.5 2.4M12 17.5v.01M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18",
  search: "M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12M15.5 15.5L20 20",
  send: "M12 19V6M6 11.5L12 5.5l6 6",
  settings: "M4 8h9M17 8h3M15 8m-2 0a2 2 0 1 0 4 0 2 2 0 1 0-4 0M4 16h3M11 16h9M9 16m-2 0a2 2 0 1 0 4 0 2 2 0 1 0-4 0",
  shield: "M12 3l7 3v5c0 5-3 8-7 10-4-2-7-5-7-10V6z",
  spark: "M12 3l1.8 5.6L19 11l-5.2 2.4L12 19l-1.8-5.6L5 11l5.2-2.4z",
  stop: "M7 7h10v10H7z",
  terminal: "M4 5h16v14H4zM7.5 9.5l3 2.5-3 2.5M13 15h4",
  tool: "M14 6a4 4 0 0 1 5-1l-3 3 2 2 3-3a4 4 0 0 1-5.500 5L8 19.500 5 16.500 12.500 9A4 4 0 0 1 14 6",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  undo: "M8 5L4 9l4 4M4 9h10a5.500 5.500 0 0 1 0 11h-3",
  user: "M12 4a4 4 0 1 0 0 8 4 4 0 0 0 0-8M4.500 20a7.500 7.500 0 0 1 15 0",
  users: "M9 5a3.500 3.500 0 1 0 0 7 3.500 3.500 0 0 0 0-7M2.500 19a6.500 6.500 0 0 1 13 0M16 5.500a3.500 3.500 0 0 1 0 6.500M18 13.500a6.500 6.500 0 0 1 3.500 5.500",
  warn: "M12 4l9 16H3zM12 10v4.500M12 17.200v.01",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg
      className="icon"
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.7"
      strokeLinecap="round"
      strokeLinejoin="round"
      aria-hidden="true"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
