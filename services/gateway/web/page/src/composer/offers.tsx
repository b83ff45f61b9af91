/** The menu above the text: commands, skills, prompts and resources, in groups. */
import { Visible } from "../ui/visible.tsx";

export interface Offer {
  group: string;
  label: string;
  hint: string;
  choose: () => void;
}

function optionId(listId: string, index: number): string {
  return `${listId}-${index}`;
}

/** What says that the text has offers, and which one is marked; without offers it is a plain text field. */
export function comboboxOf(listId: string, marked: number) {
  return {
    role: "combobox",
    "aria-autocomplete": "list",
    "aria-expanded": true,
    "aria-controls": listId,
    "aria-activedescendant": optionId(listId, marked),
  } as const;
}

interface Props {
  id: string;
  offers: readonly Offer[];
  marked: number;
  isLoading: boolean;
}

export function OfferList({ id, offers, marked, isLoading }: Props) {
  if (offers.length === 0) return null;
  return (
    <div className="composer-commands">
      <div id={id} role="listbox" aria-label="Commands, skills and prompts">
        {offers.map((each, index) => (
          <div key={`${each.group} ${each.label} ${each.hint}`} role="presentation">
            {offers[index - 1]?.group !== each.group && <div className="menu-heading" role="presentation">{each.group}</div>}
            <div
              id={optionId(id, index)}
              className="composer-command"
              role="option"
              aria-selected={index === marked}
              ref={index === marked ? (element) => element?.scrollIntoView({ block: "nearest" }) : undefined}
              onMouseDown={(event) => {
                event.preventDefault();
                each.choose();
              }}
            >
              <code><Visible>{each.label}</Visible></code> <Visible>{each.hint}</Visible>
            </div>
          </div>
        ))}
      </div>
      {isLoading && <p className="composer-loading" role="status">Reading skills…</p>}
    </div>
  );
}
