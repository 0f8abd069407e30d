import type { JSX } from 'preact';

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
