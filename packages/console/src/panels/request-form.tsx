import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { ApiError } from '../api/api-error.ts';
import type { Exchange, Fields } from '../api/wire.ts';
import { useConsole } from '../components/console-context.ts';
import { words } from '../components/format.ts';
import { KnobControl } from '../knobs/knob-control.tsx';
import { startValues } from '../knobs/knob-values.ts';
import { ExchangeView } from './exchange-log.tsx';

/** The action's schema as a form, sent in a session of its own, with the raw request and answer. */
export function RequestForm(): JSX.Element {
  const state = useConsole();
  const knobs = state.knobs.value;
  const action = useSignal<Fields>(startValues(knobs, state.chosenTask.value?.default_action));
  const session = useSignal<string | undefined>(undefined);
  const last = useSignal<Exchange | undefined>(undefined);
  const send = async (method: string, path: string, body?: Fields) => {
    try {
      last.value = await state.client.send(method, path, body);
      return JSON.parse(last.value.answer) as Fields;
    } catch (error) {
      if (error instanceof ApiError)
        last.value = { method, path: `/${path}`, status: 0, answer: error.message, milliseconds: 0 };
      return {};
    }
  };
  const reset = async () => {
    const again = session.value === undefined ? {} : { session_id: session.value };
    const { session_id } = await send('POST', 'reset', { ...state.resetOptions(), ...again });
    if (typeof session_id === 'string') session.value = session_id;
  };
  const named = { session_id: session.value };
  const query = `state?session_id=${encodeURIComponent(session.value ?? '')}`;
  return (
    <section>
      <p class="fine">A session of its own, apart from what the page plays.</p>
      <form
        class="action-form"
        onSubmit={(event) => {
          event.preventDefault();
          void send('POST', 'step', { ...named, action: action.value });
        }}
      >
        {knobs.map((knob) => (
          <div key={knob.name} class="option">
            <span class="knob-label">{words(knob.name)}</span>
            <code>{`${JSON.stringify(action.value[knob.name]) ?? 'left out'}`}</code>
            <KnobControl
              knob={{ ...knob, name: `form-${knob.name}` }}
              label={words(knob.name)}
              value={action.value[knob.name]}
              locked={false}
              onTurn={(value) => {
                action.value = { ...action.value, [knob.name]: value };
              }}
            />
          </div>
        ))}
        <div class="send">
          <button type="button" class="button" onClick={() => void reset()}>
            Reset
          </button>
          <button type="submit" class="button primary" disabled={session.value === undefined}>
            Step
          </button>
          <button
            type="button"
            class="button"
            disabled={session.value === undefined}
            onClick={() => void send('GET', query)}
          >
            State
          </button>
          {state.abilities.value.grader && (
            <button
              type="button"
              class="button"
              disabled={session.value === undefined}
              onClick={() => void send('POST', 'grader', named)}
            >
              Grade
            </button>
          )}
        </div>
      </form>
      {last.value && <ExchangeView exchange={last.value} />}
    </section>
  );
}
