import type { JSX } from 'preact';
import type { Note } from './report.ts';

/** The figures that matter most. */
export function Numbers(props: {
  numbers: readonly (readonly [value: string, name: string])[];
}): JSX.Element {
  return (
    <dl class="numbers">
      {props.numbers.map(([value, name]) => (
        <div key={name} class="panel">
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A text of more characters is wrapped. */
const LONG = 30;

interface TableProps {
  readonly label: string;
  readonly names: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** A table that scrolls sideways where it is wider than the page. */
export function Table({ label, names, rows }: TableProps): JSX.Element {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="wide-table" tabIndex={0} aria-label={label}>
      <table>
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells) => (
            <tr key={cells.join()}>
              {cells.map((cell, i) => (
                <td key={names[i]} class={cell.length > LONG ? 'long' : ''}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

export function Notes({ notes }: { notes: readonly Note[] }): JSX.Element {
  return (
    <div class="report-charts">
      {notes.map(({ title, items, code }) => (
        <section key={title} class="panel plan-answer">
          <h2>{title}</h2>
          {items && (
            <ul>
              {items.map((item) => (
                <li key={item} class="fine">
                  {item}
                </li>
              ))}
            </ul>
          )}
          {code !== undefined && <pre>{code}</pre>}
        </section>
      ))}
    </div>
  );
}
