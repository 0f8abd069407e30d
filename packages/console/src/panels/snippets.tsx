import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useConsole } from '../components/console-context.ts';
import { CodeBox } from './code-box.tsx';
import { serverUrl } from './server-url.ts';
import { LANGUAGES, type Language, snippet } from './snippet.ts';

/** Code that plays what the page plays, to copy. */
export function Snippets(): JSX.Element {
  const state = useConsole();
  const language = useSignal<Language>('Python');
  const isCopied = useSignal(false);
  const text = snippet(language.value, {
    url: serverUrl(),
    reset: state.resetOptions(),
    action: state.knobValues.value,
  });
  return (
    <section>
      <div class="segments tabs" role="radiogroup" aria-label="Language">
        {LANGUAGES.map((name) => (
          <label key={name}>
            <input
              type="radio"
              name="language"
              checked={language.value === name}
              onChange={() => {
                language.value = name;
                isCopied.value = false;
              }}
            />
            <span>{name}</span>
          </label>
        ))}
      </div>
      <CodeBox label={`${language.value} code`} text={text} />
      <button
        type="button"
        class="button"
        onClick={() =>
          void navigator.clipboard?.writeText(text).then(() => {
            isCopied.value = true;
          })
        }
      >
        {isCopied.value ? 'Copied' : 'Copy'}
      </button>
    </section>
  );
}
