import type { JSX } from 'preact';
import { useConsole } from '../components/console-context.ts';
import { Button } from '../components/controls.tsx';
import { words } from '../components/format.ts';
import { openPanel, tourStep } from '../state/overlays.ts';
import { RUN_PLACES } from '../state/run.ts';

/** The keys of the page, and what each does. */
const KEYS = [
  ['Space', 'Play and pause'],
  ['→', 'One window on'],
  ['←', 'One window back'],
  ['Home', 'To the start of the episode'],
  ['End', 'Back to now'],
  [`1 … ${RUN_PLACES}`, 'Show the server of this run'],
  ['+', 'Zoom the charts in, around the window shown'],
  ['−', 'Zoom the charts out'],
  ['?', 'This list'],
] as const;

/** The keys of the page, and every number of the observation with its definition. */
export function HelpPanel(): JSX.Element {
  const definitions = Object.entries(useConsole().definitions.value);
  return (
    <>
      <section class="tour-offer">
        <p>A walk over the page in six steps.</p>
        <Button
          look="primary"
          text="Take the tour"
          onClick={() => {
            openPanel.value = undefined;
            tourStep.value = 0;
          }}
        />
      </section>
      <section>
        <h3>Keys</h3>
        <dl class="keys">
          {KEYS.map(([key, does]) => (
            <div key={key}>
              <dt>
                <kbd>{key}</kbd>
              </dt>
              <dd>{does}</dd>
            </div>
          ))}
        </dl>
      </section>
      {definitions.length > 0 && (
        <section>
          <h3>What the numbers mean</h3>
          <dl class="glossary">
            {definitions.map(([name, definition]) => (
              <div key={name}>
                <dt>
                  {words(name)} <code>{name}</code>
                </dt>
                <dd>{definition}</dd>
              </div>
            ))}
          </dl>
        </section>
      )}
    </>
  );
}
