import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Button, Icon } from '../components/controls.tsx';
import { words } from '../components/format.ts';
import { addStyles, lazy } from '../components/lazy.tsx';
import { useConsole } from '../state/console-state.ts';
import { openPanel, PANELS, type PanelName } from '../state/page-signals.ts';
import { RUN_PLACES } from '../state/run.ts';
import styles from '../styles/drawer.css?inline';
import guides from './page-guide.json' with { type: 'json' };

addStyles(styles);

const CONTENTS: Readonly<Record<PanelName, (props: object) => JSX.Element | null>> = {
  share: lazy(async () => (await import('./share-panel.tsx')).SharePanel),
  readme: lazy(async () => {
    const { marked } = await import('marked');
    return () => <ReadmePanel html={(markdown) => marked.parse(markdown, { async: false })} />;
  }),
  help: HelpPanel,
};

/** Panel beside the page: sharing, readme, help. */
export function Drawer(): JSX.Element | null {
  const name = openPanel.value;
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    if (name && !dialog.current?.open) dialog.current?.showModal();
  }, [name]);
  if (!name) return null;
  const Contents = CONTENTS[name];
  const close = () => {
    // The browser reports a closed dialog a task later, when the next panel may be open.
    if (openPanel.value === name) openPanel.value = undefined;
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the escape key closes a dialog by itself
    <dialog
      key={name}
      ref={dialog}
      class="drawer"
      aria-label={PANELS[name].title}
      onClose={close}
      onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
    >
      <div class="drawer-body stack">
        <header class="row between">
          <h2>{PANELS[name].title}</h2>
          <Button look="bare" text={<Icon name="close" />} aria-label="Close" onClick={close} />
        </header>
        <Contents key={name} />
      </div>
    </dialog>
  );
}

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

/** What the parts of the page show, its keys, and every number of the observation with its definition. */
export function HelpPanel(): JSX.Element {
  const { definitions: known, isServer, isFleet } = useConsole();
  const definitions = Object.entries(known.value);
  const { stage, knobs, charts, end } = guides[isServer.value ? 'server' : isFleet.value ? 'fleet' : 'other'];
  return (
    <>
      <section>
        {[stage, knobs, ['What came of it', charts], ['Your turn', end]].map(([title, text]) => (
          <p key={title}>
            <b>{title}.</b> {text}
          </p>
        ))}
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
          <dl class="glossary grid">
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

/** The server's address in the readme of an environment, which does not know where it is served. */
const SOME_SERVER = 'http://localhost:7860';

/** The environment's own readme, with links to its documentation. */
function ReadmePanel({ html }: { html: (markdown: string) => string }): JSX.Element {
  const { client, environment } = useConsole();
  const { readme_content: readme, description } = environment.value ?? {};
  // The text is the server's own, and the page's policy lets no script of it run. Code that is wider than the panel can be
  // scrolled by the keyboard as well.
  const __html =
    readme && html(readme.replaceAll(SOME_SERVER, client.url)).replaceAll('<pre>', '<pre tabindex="0">');
  return (
    <>
      <p>
        <a href="../docs">Every route, to try out</a> · <a href="../openapi.json">openapi.json</a>
      </p>
      {__html ? <div class="readme" dangerouslySetInnerHTML={{ __html }} /> : <p>{description}</p>}
    </>
  );
}
