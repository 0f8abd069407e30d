import { useSignal } from '@preact/signals';
import type { ComponentChildren, JSX } from 'preact';
import { useCallback } from 'preact/hooks';
import { Button } from '../components/controls.tsx';

/** Copies what stands in the field before it. */
function CopyButton({ text }: { text: string }): JSX.Element {
  const copied = useSignal('');
  const copy = async (field: Element | null) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      // Pages in frames and pages without TLS may not use the clipboard; the old way works there.
      (field as HTMLInputElement).select();
      document.execCommand('copy');
    }
    copied.value = text;
  };
  return (
    <Button
      text={text !== '' && copied.value === text ? 'Copied' : 'Copy'}
      disabled={text === ''}
      onClick={({ currentTarget }) => void copy(currentTarget.previousElementSibling)}
    />
  );
}

/** A text to take away. */
export function CopyBox({ label, text }: { label: string; text: string }): JSX.Element {
  return (
    <div class="gap">
      <input
        class="fill"
        type="text"
        readOnly
        aria-label={label}
        value={text}
        onFocus={(event) => event.currentTarget.select()}
      />
      <CopyButton text={text} />
    </div>
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

export interface TableProps {
  readonly names: readonly ComponentChildren[];
  /** The first cell of a row names it. */
  readonly rows: readonly (readonly ComponentChildren[])[];
  readonly isBold?: (row: number) => boolean;
}

/** A text of more characters is wrapped. */
const LONG = 30;

export function Table({ names, rows, isBold }: TableProps): JSX.Element {
  return (
    <table>
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
        {rows.map(([first, ...cells], i) => (
          <tr key={i} class={isBold?.(i) ? 'bold' : ''}>
            <th scope="row">{first}</th>
            {cells.map((cell, k) => (
              <td key={k} class={typeof cell === 'string' && cell.length > LONG ? 'long' : ''}>
                {cell}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
