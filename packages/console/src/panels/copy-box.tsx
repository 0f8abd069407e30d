import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useCallback, useRef } from 'preact/hooks';
import { Button } from '../components/controls.tsx';

/** A text to take away. */
export function CopyBox({ label, text }: { label: string; text: string }): JSX.Element {
  const box = useRef<HTMLInputElement>(null);
  const isCopied = useSignal(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages in frames and pages without TLS may not use the clipboard; the old way works there.
      box.current?.select();
      document.execCommand('copy');
    }
    isCopied.value = true;
  };
  return (
    <div class="copy-box">
      <input
        ref={box}
        type="text"
        readOnly
        aria-label={label}
        value={text}
        onFocus={(event) => event.currentTarget.select()}
      />
      <Button text={isCopied.value ? 'Copied' : 'Copy'} disabled={text === ''} onClick={() => void copy()} />
    </div>
  );
}

/** More lines than this are scrolled to. */
const MOST_LINES = 24;

/** A text to read and to copy, as it is. */
export function CodeBox({ label, text }: { label: string; text: string }): JSX.Element {
  const lines = text.split('\n').length;
  return (
    <textarea
      class="code"
      readOnly
      spellcheck={false}
      wrap="off"
      aria-label={label}
      rows={Math.min(MOST_LINES, lines + 1)}
      value={text}
    />
  );
}

/** `attempt` does what may fail; `fault` shows the sentence that it failed with. */
export function useAttempt() {
  const said = useSignal('');
  const attempt = useCallback(
    async (act: () => Promise<void>) => {
      said.value = '';
      try {
        await act();
      } catch (error) {
        said.value = (error as Error).message;
      }
    },
    [said],
  );
  const fault = said.value && (
    <p class="fault" role="alert">
      {said.value}
    </p>
  );
  return { attempt, fault };
}

interface TableProps {
  readonly kind: string;
  readonly names: readonly ComponentChildren[];
  readonly rows: readonly (readonly ComponentChildren[])[];
}

/** A table of a panel. */
export function Table({ kind, names, rows }: TableProps): JSX.Element {
  return (
    <table class={kind}>
      <thead>
        <tr>
          {names.map((name, i) => (
            <th key={i} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((cells, i) => (
          <tr key={i}>
            {cells.map((cell, k) => (
              <td key={k}>{cell}</td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
