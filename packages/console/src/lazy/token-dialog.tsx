import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useConsole } from '../components/console-context.ts';
import { Button } from '../components/controls.tsx';
import { keepToken } from '../state/kept.ts';

/** Asks for the token that the server wants. */
export function TokenDialog(): JSX.Element | null {
  const state = useConsole();
  const dialog = useRef<HTMLDialogElement>(null);
  const isNeeded = state.needsToken.value;
  useEffect(() => {
    if (isNeeded && !dialog.current?.open) dialog.current?.showModal();
  }, [isNeeded]);
  if (!isNeeded) return null;
  return (
    <dialog ref={dialog} class="token" aria-label="Token" onCancel={(event) => event.preventDefault()}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const token = String(new FormData(event.currentTarget).get('token') ?? '').trim();
          keepToken(token);
          state.enterToken(token);
        }}
      >
        <h2>This server wants a token</h2>
        <p class="fine">Its operator has set one. It is kept until this tab is closed.</p>
        <div class="copy-box">
          <input
            type="password"
            name="token"
            aria-label="Token"
            autocomplete="off"
            required
            pattern="\s*\S+\s*"
            title="A text without spaces"
          />
          <Button look="primary" text="Enter" type="submit" />
        </div>
      </form>
    </dialog>
  );
}
