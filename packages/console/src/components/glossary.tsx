import type { JSX } from 'preact';
import { useConsole } from './console-context.ts';
import { words } from './format.ts';

/** Every number of the observation with its definition, for those who cannot hover. */
export function Glossary(): JSX.Element | null {
  const definitions = Object.entries(useConsole().definitions.value);
  if (definitions.length === 0) return null;
  return (
    <details class="panel glossary">
      <summary>What the numbers mean</summary>
      <dl>
        {definitions.map(([name, definition]) => (
          <div key={name}>
            <dt>{words(name)}</dt>
            <dd>{definition}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
