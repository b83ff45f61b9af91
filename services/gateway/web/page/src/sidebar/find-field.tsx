/** The field that narrows the list of chats, with its filters as pills in it. */
import { useRef } from "react";
import { Icon } from "../ui/icon.tsx";
import { useFilters } from "./filters.ts";
import { type FilterName, FILTERS, typedFilter } from "./typed-filters.ts";

export function FindField() {
  const [filters, setFilters] = useFilters();
  const field = useRef<HTMLInputElement>(null);
  const chosen = FILTERS.filter(([name]) => filters[name]);
  const others = FILTERS.filter(([name]) => !filters[name]);

  /** The button that was pressed is gone then, so the field has the focus. */
  function set(name: FilterName, isOn: boolean): void {
    setFilters({ [name]: isOn });
    field.current?.focus();
  }

  return (
    <>
      <div className="side-find input">
        {chosen.map(([name, label]) => (
          <button key={name} type="button" className="pill" aria-label={`Remove the filter ${label}`} onClick={() => set(name, false)}>
            {label}
            <Icon name="close" />
          </button>
        ))}
        <input
          ref={field}
          type="search"
          placeholder="Find in chats"
          aria-label="Find in chats"
          title="is:unread, is:shared and is:archived are filters"
          value={filters.text}
          onChange={(event) => {
            const typed = typedFilter(event.target.value);
            setFilters(typed ? { [typed.name]: true, text: typed.text } : { text: event.target.value });
          }}
          onKeyDown={(event) => {
            const last = chosen.at(-1);
            if (event.key === "Backspace" && filters.text === "" && last) set(last[0], false);
          }}
        />
      </div>
      <div className="side-filters" role="group" aria-label="Filters">
        {others.map(([name, label]) => (
          <button key={name} type="button" className="chip" onClick={() => set(name, true)}>
            {label}
          </button>
        ))}
        <button
          type="button"
          className="chip"
          aria-pressed={filters.grouping === "status"}
          onClick={() => setFilters({ grouping: filters.grouping === "status" ? "day" : "status" })}
        >
          By status
        </button>
      </div>
    </>
  );
}
