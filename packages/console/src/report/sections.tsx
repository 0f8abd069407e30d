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
