import type { JSX } from 'preact';
import type { Fields } from '../api/wire.ts';
import { useConsole } from '../components/console-context.ts';

/** The fields of the action and the observation: name, type, range and meaning. */
export function SchemaTables(): JSX.Element {
  const schemas = useConsole().schemas.value;
  return (
    <>
      <SchemaTable title="Action" schema={schemas?.action ?? {}} />
      <SchemaTable title="Observation" schema={schemas?.observation ?? {}} />
      <SchemaTable title="State" schema={schemas?.state ?? {}} />
    </>
  );
}

function SchemaTable({ title, schema }: { title: string; schema: Fields }): JSX.Element {
  const properties = Object.entries((schema.properties ?? {}) as Record<string, Fields>);
  return (
    <section>
      <h3>{title}</h3>
      <table class="schema">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">Type</th>
            <th scope="col">Meaning</th>
          </tr>
        </thead>
        <tbody>
          {properties.map(([name, property]) => (
            <tr key={name}>
              <td>
                <code>{name}</code>
              </td>
              <td>{typeText(property)}</td>
              <td>{String(property.description ?? '')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function typeText({ type, enum: values, minimum, maximum, anyOf }: Fields): string {
  if (Array.isArray(values)) return values.map(String).join(' | ');
  if (Array.isArray(anyOf)) return (anyOf as Fields[]).map(typeText).join(' | ');
  const isBounded = (bound: unknown) =>
    typeof bound === 'number' && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
  const range =
    isBounded(minimum) && isBounded(maximum)
      ? ` ${minimum} to ${maximum}`
      : isBounded(minimum)
        ? ` from ${minimum}`
        : '';
  return `${String(type ?? 'any')}${range}`;
}
