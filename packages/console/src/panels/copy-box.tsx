import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useRef } from 'preact/hooks';
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
