import { useSignal } from '@preact/signals';
import type { EnvironmentEntry } from '@servegym/openenv/protocol';
import type { JSX } from 'preact';
import { useEffect } from 'preact/hooks';
import { useConsole } from '../components/console-context.ts';

/** The path of the page's own server. */
const HERE = './';

/** The environment of the page, and those of the same port, whose pages it leads to. */
export function EnvironmentChoice(): JSX.Element {
  const { client, environment } = useConsole();
  const entries = useSignal<readonly EnvironmentEntry[]>([]);
  useEffect(() => {
    client.ask('environments').then(
      (answer) => {
        if (Array.isArray(answer.environments)) entries.value = answer.environments;
      },
      // The page says by itself when the server does not answer, and does well without a list.
      () => {},
    );
  }, [client, entries]);
  const isAlone = entries.value.length < 2;
  return (
    <div class="option">
      <span class="knob-label">Environment</span>
      {isAlone ? (
        <span>
          {environment.value?.name} {environment.value?.version}
        </span>
      ) : (
        <select
          aria-label="Environment"
          value={HERE}
          onChange={(event) => location.assign(`../${event.currentTarget.value}web/`)}
        >
          {entries.value.map(({ name, version, path }) => (
            <option key={path} value={path}>
              {name} {version}
            </option>
          ))}
        </select>
      )}
      <p class="trade">{environment.value?.description}</p>
    </div>
  );
}
