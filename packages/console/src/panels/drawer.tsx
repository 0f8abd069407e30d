import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { Button, CloseIcon } from '../components/controls.tsx';
import { addStyles, lazy } from '../components/lazy.tsx';
import { openPanel, PANELS, type PanelName } from '../state/overlays.ts';
import styles from '../styles/drawer.css?inline';

addStyles(styles);

const CONTENTS: Readonly<Record<PanelName, (props: object) => JSX.Element | null>> = {
  history: lazy(async () => (await import('./history-panel.tsx')).HistoryPanel),
  share: lazy(async () => (await import('./share-panel.tsx')).SharePanel),
  leaderboard: lazy(async () => (await import('./leaderboard-panel.tsx')).LeaderboardPanel),
  developers: lazy(async () => (await import('./developers-panel.tsx')).DevelopersPanel),
  readme: lazy(async () => (await import('./readme-panel.tsx')).ReadmePanel),
  help: lazy(async () => (await import('./help-panel.tsx')).HelpPanel),
};

/** Panel beside the page: sharing, leaderboard, requests and schemas for developers, readme, help. */
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
      aria-label={PANELS[name]}
      onClose={close}
      onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
    >
      <div class="drawer-body">
        <header>
          <h2>{PANELS[name]}</h2>
          <Button look="bare" text={<CloseIcon />} aria-label="Close" onClick={close} />
        </header>
        <Contents key={name} />
      </div>
    </dialog>
  );
}
