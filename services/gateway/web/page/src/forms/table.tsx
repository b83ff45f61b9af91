/** A list of things as a table, whose rows become lists of named values on narrow screens. */
import type { ReactNode } from "react";
import "./forms.css";

export interface Column<T> {
  title: string;
  cell: (row: T) => ReactNode;
  /** Numbers stand at the right. */
  isNumber?: boolean;
  /** Short words stay on one line. */
  isShort?: boolean;
}

interface TableProps<T> {
  label: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T) => string;
  empty: { title: string; text: ReactNode };
}

export function Table<T>({ label, columns, rows, keyOf, empty }: TableProps<T>) {
  if (rows.length === 0) {
    return (
      <div className="table-empty">
        <p className="cell-main">{empty.title}</p>
        <p>{empty.text}</p>
      </div>
    );
  }
  return (
    <div className="table-frame" role="region" aria-label={label} tabIndex={0}>
      <table className="table">
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" className={column.isNumber ? "is-number" : ""}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.title} className={column.isNumber ? "is-number" : column.isShort ? "is-short" : ""} data-title={column.title || undefined}>
                  {/* One element, so that on narrow screens it stands beside the title. */}
                  <div className="table-cell">{column.cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
