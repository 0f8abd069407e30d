import type { Section } from '@servegym/operators/report';
import type { JSX } from 'preact';
import { XYChartBox } from '../charts/xy-chart.tsx';
import { CopyBox, Table } from '../panels/copy-box.tsx';

/** The parts of a result, as the command or the server gives them. */
export function Sections({ sections }: { sections: readonly Section[] }): JSX.Element {
  return (
    <div class="sections">
      {sections.map((section, i) => (
        <SectionView key={`${section.title} ${i}`} section={section} />
      ))}
    </div>
  );
}

function SectionView({ section }: { section: Section }): JSX.Element {
  const { title, numbers, look = '' } = section;
  if (numbers)
    return (
      <dl class="numbers">
        {numbers.map(([value, name]) => (
          <div key={name} class="panel">
            <dt class="fine">{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    );
  if (look === 'folded')
    return (
      <details class="panel plan-answer">
        <summary>{title}</summary>
        <Parts section={section} />
      </details>
    );
  return (
    <section class={look === 'heading' ? look : `panel plan-answer ${look}`} aria-label={title}>
      {title && <h2>{title}</h2>}
      <Parts section={section} />
    </section>
  );
}

function Parts({ section }: { section: Section }): JSX.Element {
  const { paragraphs = [], chart, table, commands, items, code } = section;
  return (
    <>
      {paragraphs.map((text) => (
        <p key={text}>{text}</p>
      ))}
      {chart && <XYChartBox chart={chart} />}
      {table && <WideTable table={table} />}
      {commands && (
        <section class="commands grid">
          {commands.map(({ engine, line, notExpressed }) => (
            <div key={engine}>
              <h2>Start it with {engine}</h2>
              <CopyBox label={`Command for ${engine}`} text={line} />
              {notExpressed.length > 0 && <p class="fine">Not in the line: {notExpressed.join('; ')}</p>}
            </div>
          ))}
        </section>
      )}
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
    </>
  );
}

/** A table that scrolls sideways where it is wider than the page. Rows that are marked with a star are bold. */
function WideTable({ table }: { table: NonNullable<Section['table']> }): JSX.Element {
  const { label, names, rows, notes = [] } = table;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section class="wide-table" tabIndex={0} aria-label={label}>
      <Table names={names} rows={rows} isBold={(row) => rows[row][0].endsWith('*')} />
      <p class="fine">{notes.join(' ')}</p>
    </section>
  );
}
